# Headstart: `make run` and `make test` do all the set-up they need. `make help` lists what there is.
#
# Built files are in target/ (CARGO_TARGET_DIR). Put sudo before make install and make uninstall only: the others build as you,
# and ask where root is needed.

PREFIX ?= /usr/local
DESTDIR ?=
bindir ?= $(PREFIX)/bin
datadir ?= $(PREFIX)/share
mandir ?= $(datadir)/man
localedir ?= $(datadir)/locale
bashcompletiondir ?= $(datadir)/bash-completion/completions
zshcompletiondir ?= $(datadir)/zsh/site-functions
fishcompletiondir ?= $(datadir)/fish/vendor_completions.d
statedir ?= /var/lib/headstart
INSTALL ?= install

ID := io.github.headstart_desktop.Headstart
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# What is installed beside the programs, as it will be installed.
BUILT := $(TARGET)/share
SCRIPTS := data/scripts
CARGO := $(SCRIPTS)/cargo
LANGUAGES := $(shell grep -v '^\#' po/LINGUAS)
CATALOGUES := $(LANGUAGES:%=$(BUILT)/locale/%/LC_MESSAGES/headstart.mo)
IS_ROOT := $(filter 0,$(shell id -u))

# The window looks for its translations beside the folder it is in; it is told only if they are elsewhere.
ifneq ($(localedir),$(PREFIX)/share/locale)
export HEADSTART_LOCALEDIR := $(localedir)
endif

.PHONY: all
all: programs documents catalogues desktop

.PHONY: help
help:
	@echo 'make run      compare the starts of an application: APP=gimp, CMD="git status", ROUNDS=5, OPTIONS="--cold=drop"'
	@echo 'make test     everything that the continuous integration checks'
	@echo 'make bench    measure on simulated drives: BENCH="--drives hdd --apps gimp", or BENCH=--help'
	@echo 'make          build'
	@echo 'make install  install: PREFIX=/usr/local, DESTDIR='
	@echo 'make uninstall'
	@echo '              remove what was installed, with PURGE=1 also what was learned'
	@echo 'make clean    remove what was built'

# ---- building

.PHONY: no-sudo
no-sudo:
	@. $(SCRIPTS)/lib.sh; refuse_sudo

.PHONY: build-packages test-packages bench-packages
build-packages: no-sudo
	@$(SCRIPTS)/packages build
test-packages: no-sudo
	@$(SCRIPTS)/packages build test
bench-packages: no-sudo
	@$(SCRIPTS)/packages build bench

.PHONY: programs
programs: build-packages
	$(CARGO) build --locked --release -p headstart-daemon -p headstart

.PHONY: documents
documents: programs
	mkdir -p $(BUILT)/completions
	$(TARGET)/release/headstartctl man $(BUILT)/man
	$(TARGET)/release/headstartctl completions bash >$(BUILT)/completions/headstartctl
	$(TARGET)/release/headstartctl completions zsh >$(BUILT)/completions/_headstartctl
	$(TARGET)/release/headstartctl completions fish >$(BUILT)/completions/headstartctl.fish

.PHONY: catalogues
catalogues: build-packages $(CATALOGUES)

$(BUILT)/locale/%/LC_MESSAGES/headstart.mo: po/%.po | build-packages
	@mkdir -p $(@D)
	msgfmt --check --output-file=$@ $<

.PHONY: desktop
desktop: $(BUILT)/$(ID).desktop $(BUILT)/$(ID).metainfo.xml

$(BUILT)/$(ID).desktop: data/$(ID).desktop po/LINGUAS $(LANGUAGES:%=po/%.po) | build-packages
	@mkdir -p $(@D)
	msgfmt --desktop --template=$< -d po --output-file=$@

$(BUILT)/$(ID).metainfo.xml: data/$(ID).metainfo.xml po/LINGUAS $(LANGUAGES:%=po/%.po) | build-packages
	@mkdir -p $(@D)
	msgfmt --xml --template=$< -d po --output-file=$@

# ---- running

.PHONY: run
run: export APP := $(APP)
run: export CMD := $(CMD)
run: export ROUNDS := $(ROUNDS)
run: export OPTIONS := $(OPTIONS)
run: programs catalogues
	@$(SCRIPTS)/run

.PHONY: bench
bench: bench-packages
	$(CARGO) bench --locked -p headstart-daemon --bench launch $(AS_ROOT) -- $(BENCH)

# ---- checking

# Cargo is the person's, the programs it starts are root's.
AS_ROOT := --config 'target."cfg(all())".runner = "$(abspath $(SCRIPTS)/runner)"'
CAN_BE_ROOT := $(or $(IS_ROOT),$(shell command -v sudo || command -v doas))

.PHONY: test
test: check-fmt check-lint check-docs check-scripts check-data check-po check-man check-tests check-bench check-install

.PHONY: check-fmt
check-fmt: no-sudo
	$(CARGO) fmt --all --check

.PHONY: check-lint
check-lint: test-packages
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

.PHONY: check-docs
check-docs: test-packages
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --workspace --no-deps --document-private-items

.PHONY: check-scripts
check-scripts: test-packages
	shellcheck --external-sources --severity=style $(wildcard $(SCRIPTS)/*) po/update data/screenshots/make .ci/run

.PHONY: check-data
check-data: test-packages desktop
	desktop-file-validate data/$(ID).desktop $(BUILT)/$(ID).desktop
	appstreamcli validate --no-net data/$(ID).metainfo.xml
	appstreamcli validate --no-net $(BUILT)/$(ID).metainfo.xml
	find data -name '*.svg' -exec xmllint --noout {} +

# That every sentence is translated, and no other, is what gui/tests/translations.rs tests.
.PHONY: check-po
check-po: test-packages
	for language in $(LANGUAGES); do msgfmt --check --output-file=/dev/null po/$$language.po || exit 1; done

.PHONY: check-man
check-man: test-packages
	$(CARGO) run --locked -q -p headstart-daemon --bin headstartctl -- man $(TARGET)/man
	$(SCRIPTS)/check-man $(TARGET)/man/*.1

# Tests that need root say so and skip without it. Where root can be had by sudo, they run a second time as root.
.PHONY: check-tests
check-tests: test-packages
ifdef IS_ROOT
	HEADSTART_REQUIRE_ROOT_TESTS=1 $(CARGO) test --locked --workspace
else
	$(CARGO) test --locked --workspace
ifdef CAN_BE_ROOT
	HEADSTART_REQUIRE_ROOT_TESTS=1 $(CARGO) test --locked -p headstart-daemon $(AS_ROOT)
else
	@echo 'SKIPPED: the tests that need root; install sudo, or run make test as root' >&2
endif
endif

# That the benchmark works, not what is gained.
.PHONY: check-bench
check-bench: test-packages
ifdef CAN_BE_ROOT
	$(CARGO) bench --locked -p headstart-daemon --bench launch $(AS_ROOT) -- --quick --output $(TARGET)/bench/quick
else
	@echo 'SKIPPED: the check of the benchmark, which needs root' >&2
endif

# What is installed is removed again.
.PHONY: check-install
check-install: test-packages all
	rm -rf $(TARGET)/stage
	$(MAKE) --no-print-directory install DESTDIR=$(TARGET)/stage PREFIX=/usr >/dev/null
	find $(TARGET)/stage -type f -printf '%M %P\n' | sort -k 2
	desktop-file-validate $(TARGET)/stage/usr/share/applications/$(ID).desktop
	$(TARGET)/stage/usr/bin/headstartctl --version
	$(MAKE) --no-print-directory uninstall DESTDIR=$(TARGET)/stage PREFIX=/usr >/dev/null
	test -z "$$(find $(TARGET)/stage -type f)"

# ---- installing

.PHONY: install
install:
	@test -x $(TARGET)/release/headstartctl && test -e $(BUILT)/$(ID).desktop || \
		{ echo 'nothing is built yet: run make first, as yourself' >&2; exit 1; }
	$(INSTALL) -Dm755 -t $(DESTDIR)$(bindir) $(TARGET)/release/headstart $(TARGET)/release/headstartctl
	$(INSTALL) -Dm644 -t $(DESTDIR)$(datadir)/applications $(BUILT)/$(ID).desktop
	$(INSTALL) -Dm644 -t $(DESTDIR)$(datadir)/metainfo $(BUILT)/$(ID).metainfo.xml
	$(INSTALL) -Dm644 -t $(DESTDIR)$(datadir)/icons/hicolor/scalable/apps data/icons/hicolor/scalable/apps/$(ID).svg
	$(INSTALL) -Dm644 -t $(DESTDIR)$(datadir)/icons/hicolor/symbolic/apps data/icons/hicolor/symbolic/apps/$(ID)-symbolic.svg
	$(INSTALL) -Dm644 -t $(DESTDIR)$(mandir)/man1 $(BUILT)/man/*.1
	$(INSTALL) -Dm644 -t $(DESTDIR)$(bashcompletiondir) $(BUILT)/completions/headstartctl
	$(INSTALL) -Dm644 -t $(DESTDIR)$(zshcompletiondir) $(BUILT)/completions/_headstartctl
	$(INSTALL) -Dm644 -t $(DESTDIR)$(fishcompletiondir) $(BUILT)/completions/headstartctl.fish
	for language in $(LANGUAGES); do \
		$(INSTALL) -Dm644 -t $(DESTDIR)$(localedir)/$$language/LC_MESSAGES \
			$(BUILT)/locale/$$language/LC_MESSAGES/headstart.mo || exit 1; \
	done
	@$(REFRESH)

.PHONY: uninstall
uninstall:
	rm -f $(DESTDIR)$(bindir)/headstart $(DESTDIR)$(bindir)/headstartctl
	rm -f $(DESTDIR)$(datadir)/applications/$(ID).desktop $(DESTDIR)$(datadir)/metainfo/$(ID).metainfo.xml
	rm -f $(DESTDIR)$(datadir)/icons/hicolor/scalable/apps/$(ID).svg
	rm -f $(DESTDIR)$(datadir)/icons/hicolor/symbolic/apps/$(ID)-symbolic.svg
	rm -f $(DESTDIR)$(mandir)/man1/headstartctl.1 $(DESTDIR)$(mandir)/man1/headstartctl-*.1
	rm -f $(DESTDIR)$(bashcompletiondir)/headstartctl $(DESTDIR)$(zshcompletiondir)/_headstartctl
	rm -f $(DESTDIR)$(fishcompletiondir)/headstartctl.fish
	for language in $(LANGUAGES); do rm -f $(DESTDIR)$(localedir)/$$language/LC_MESSAGES/headstart.mo; done
	@$(REFRESH)
ifeq ($(PURGE),1)
	rm -rf $(DESTDIR)$(statedir)
	@echo 'Each person'"'"'s last result is still in their home: ~/.local/state/headstart'
else
	@echo 'What was learned is still in $(DESTDIR)$(statedir); make uninstall PURGE=1 removes it'
endif

# The menus' caches; a package's own hooks do that for a package.
define REFRESH
if [ -z '$(DESTDIR)' ]; then \
	update-desktop-database -q $(datadir)/applications 2>/dev/null; \
	gtk-update-icon-cache -q -t -f $(datadir)/icons/hicolor 2>/dev/null; \
fi; true
endef

.PHONY: clean
clean:
	rm -rf $(TARGET)
