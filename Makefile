# Every gate and every job of the project, for people and CI alike: `make certify`, `make test`, `make check`.
PYTHON ?= /usr/bin/python3
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: venv
venv: $(VENV)/.stamp
$(VENV)/.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -e '.[report,test,dev]'
	touch $@
