"""What a person sees: it renders typed results and computes nothing of them.

- `page_audit` and `page_sweep`: report.html, from the templates in `templates/` (`html`).
- `charts`, `profile_chart`, `multiples`: its drawings, templates too; `bins` and `scales` place what is drawn.
- `figures` and `traces`: figures as files, in one `style`.
- `columns` and `tables`: tables for the terminal, as CSV, Markdown and LaTeX. `terminal`: the verdict of one audit.
- `command`: the command that makes a result again.
"""
