"""Run by another interpreter: executes notebooks in the current folder, each in a Jupyter kernel of its own.

Reads from standard input a JSON list of notebooks, each a list of its cells' sources. Prints JSON: of each notebook
what each cell gave, [[kind, {mime type: text}], …]. Fails where a cell does.
"""

import json
import sys

import nbformat
from nbclient import NotebookClient

made = []
for sources in json.load(sys.stdin):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": "."}}).execute()
    given = [[[out.output_type, out.get("data") or {"text/plain": out.get("text", "")}] for out in cell.outputs]
             for cell in notebook.cells]  # fmt: skip
    made.append(given)
print(json.dumps(made))
