# The everyday commands. Each assumes the project's virtual environment is active (see README.md).
.PHONY: test processors slow lowest lint format types bench table1 figures check

test:      ## tests and doctests
	python -m pytest
processors: ## the tests marked `processor`, on simulated processors
	python -m tests.support.processors test
slow:      ## long studies
	python -m pytest -m slow
lowest:    ## tests with the lowest versions that pyproject.toml allows, in an environment of their own
	python3 -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet -c tests/constraints-lowest.txt '.[test]'
	.venv-lowest/bin/python -m pytest
lint:
	ruff check . && ruff format --check .
format:
	ruff check --fix . && ruff format .
types:
	mypy
bench:     ## ratios, slopes, memory and runs to a verdict (most of an hour); benchmarks/README.md
	python -m benchmarks
table1:    ## Table 1 of the paper
	python -m dpsmc_audit +sweep=table1
figures:   ## every figure in figures/; long studies from their reference results (python -m experiments --recompute: all anew)
	python -m experiments
check: lint types test processors
