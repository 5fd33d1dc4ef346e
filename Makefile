# make demo    set up .venv if needed, then compile, run and check the example programs
# make test    the same set-up, then ruff, mypy and the quick tests (about 15 minutes on
#              two cores; at the end it says what it did not run); TESTS=tests/schedule: all tests there
# make check   every test, in named parts (about an hour on two cores); it goes on where it stopped;
#              PARTS="codegen browser": only these (`python -m tests.run parts` lists them);
#              AGAIN=1: also the parts that have passed for the same sources
# make opinfo  check every operator that torch knows against eager (two hours of a core; goes on where
#              it was stopped); OPINFO="--dtypes float16 --shard 1/4": options of tests/opinfo/run.py
# make fuzz    compare 5,000 random programs with eager (hours); FUZZ="--programs 200 --seed 3":
#              options of tests/fuzz/run.py
# make faults  break what is around the compiler, thousands of times: files, folders, processes,
#              compilers (half an hour; threads, caches and growth of memory again and again: another);
#              FAULTS="--only folders": options of tests/faults/run.py
# make bench   ours, eager and stock TorchInductor: steady state, then the first call (half an hour);
#              BENCH="--no-stock softmax": options of benchmarks/cpu.py, which writes to reports/cpu;
#              BENCH=peers: next to OpenVINO, ONNX Runtime and XLA (benchmarks/peers)
# make gpu     on a machine with a GPU, in ten minutes: all checks of GPU code, then ours, eager and stock
#              TorchInductor; GPU="--parts times softmax": options of benchmarks/gpu.py (reports/gpu)
# make hub     the real JupyterHub with thirty students who run tutorial 1 (ten minutes, 24 GB): what
#              they wait for, memory, errors; HUB="--users 5": options of deploy/jupyterhub/load.py
# make docs    these docs, the API and the tutorials with their outputs as a site, in build/site/html;
#              DOCS="--run 1": options of deploy/site/build.py
# make lite    the part of that site that runs in a browser, in build/site/html/lite: JupyterLite with
#              the first tutorial, three labs and a gallery; `make docs` builds it too (needs npm);
#              LITE="--into FOLDER": options of deploy/lite/build.py
# make book    the course and the docs as a PDF in each language, in build/site; needs Chromium;
#              BOOK="--font FILE": options of deploy/site/book.py
# make dist    the sdist and the wheel, in dist/ (`make check` installs and tests a wheel of its own)
# make javascript   the explorer's modules in javascript/: checked, and built into widgets/built and
#              javascript/labextension (node)
# Others: lint, clean.
#
# PYTHON=python3.12        another interpreter for .venv (3.11 or newer)
# TORCH_INDEX=URL          where the torch build comes from; empty: from the default index, which on
#                          Linux means the CUDA build

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HAS_NVIDIA := $(shell command -v nvidia-smi 2>/dev/null)
TORCH_INDEX ?= $(if $(HAS_NVIDIA),,https://download.pytorch.org/whl/cpu)
INSTALLED := $(VENV)/.installed
LABEXTENSION := $(wildcard javascript/labextension/*) widgets/built/page.js widgets/explorer.css
TORCH := $(shell grep '^torch==' constraints.txt)
TESTS ?=
PARTS ?=
AGAIN ?=
OPINFO ?=
FUZZ ?=
FAULTS ?=
BENCH ?=
GPU ?=
HUB ?=
DOCS ?=
LITE ?=
BOOK ?=

.PHONY: demo test check bench gpu opinfo fuzz faults hub docs lite book javascript dist lint clean install
demo: $(INSTALLED)
	$(BIN)/inductor-lab demo

test: $(INSTALLED)
	$(BIN)/python -m tests.run test $(TESTS)

check: $(INSTALLED)
	$(BIN)/python -m tests.run check $(PARTS) $(if $(AGAIN),--again)

bench: $(INSTALLED)
ifneq (,$(filter peers,$(BENCH)))
	$(BIN)/python -m benchmarks.peers $(filter-out peers,$(BENCH))
else
	$(BIN)/python -m benchmarks.cpu $(BENCH)
	$(BIN)/python -m benchmarks.compile_time
endif

gpu: $(INSTALLED)
	$(BIN)/python -m benchmarks.gpu $(GPU)

opinfo: $(INSTALLED)
	$(BIN)/python -m tests.opinfo.run $(OPINFO)

fuzz: $(INSTALLED)
	$(BIN)/python -m tests.fuzz.run $(FUZZ)

faults: $(INSTALLED)
	$(BIN)/python -m tests.faults.run $(FAULTS)

hub: $(INSTALLED)
	$(BIN)/python -m deploy.jupyterhub.load $(HUB)

docs: $(INSTALLED)
	$(BIN)/python -m deploy.site.build $(DOCS)
	$(BIN)/python -m deploy.lite.build $(LITE)

lite: $(INSTALLED)
	$(BIN)/python -m deploy.lite.build $(LITE)

book: $(INSTALLED)
	$(BIN)/python -m deploy.site.book $(BOOK)

javascript: javascript/node_modules
	cd javascript && npm run --silent build && npm run --silent check

javascript/node_modules: javascript/package-lock.json
	cd javascript && npm install --no-save --ignore-scripts --no-fund --no-audit
	touch $@

dist: $(INSTALLED)
	$(BIN)/python -m tests.wheel.build dist

# widgets/ is the package inductor_lab.widgets once it is installed; mypy finds it under that name
lint: $(INSTALLED)
	@mkdir -p .mypy/inductor_lab && ln -sfn ../../widgets .mypy/inductor_lab/widgets
	$(BIN)/ruff check .
	$(BIN)/mypy

install: $(INSTALLED)

# torch first and by itself: its index has the small CPU build, and nothing else that is needed.
# Where that index cannot be reached, the next line takes torch from the default index.
# An editable install lacks the JupyterLab extension, so it is copied.
$(INSTALLED): pyproject.toml constraints.txt $(LABEXTENSION)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
ifneq ($(TORCH_INDEX),)
	@echo "installing $(TORCH) (CPU build)"
	@$(BIN)/python -m pip install -q --retries 0 --no-deps --index-url $(TORCH_INDEX) $(TORCH) \
		2>/dev/null || echo "$(TORCH_INDEX) did not answer; taking torch from the default index"
endif
	@echo "installing inductor_lab and what it needs (some minutes)"
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[test]'
	@$(BIN)/python -m deploy.labextension
	touch $@

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache *.egg-info reports
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
