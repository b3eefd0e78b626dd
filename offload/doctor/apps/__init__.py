"""Will this program's connections be offloaded? One file per program; model.py and judge.py are shared."""
