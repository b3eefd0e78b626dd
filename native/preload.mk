# A library that is preloaded, $(BUILD)/$(NAME).so of $(NAME).c: how keylog and isn are built, checked and linted.
include ../common.mk

HARD := -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIC -shared -Wl,-z,relro,-z,now
SAN := -O1 -g -fPIC -shared -fsanitize=undefined -fsanitize-undefined-trap-on-error
WORK := $(BUILD)/$(NAME).d

.PHONY: all check lint clean
all: $(BUILD)/$(NAME).so

$(BUILD)/$(NAME).so: $(NAME).c Makefile ../preload.mk
	@mkdir -p $(BUILD)
	$(CC) $(WARN) $(HARD) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(LDFLAGS) -ldl

$(WORK)/$(NAME)-ubsan.so: $(NAME).c Makefile ../preload.mk
	@mkdir -p $(WORK)
	$(CC) $(WARN) $(SAN) -o $@ $< -ldl

check: $(BUILD)/$(NAME).so $(WORK)/$(NAME)-ubsan.so
	$(ALONE) $(CHECK) tests --program $(BUILD)/$(NAME).so
	$(ALONE) $(CHECK) tests --program $(WORK)/$(NAME)-ubsan.so

lint:
	gcc $(WARN) $(HARD) -fsyntax-only $(NAME).c
	$(CLANG) $(WARN) -O2 -fPIC -fsyntax-only $(NAME).c

clean:
	rm -rf $(BUILD)/$(NAME).so $(WORK)
