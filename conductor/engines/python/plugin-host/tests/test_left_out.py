"""What the library is set up without, and what becomes of a driver that wants it."""

import subprocess
import sys
from pathlib import Path

from conductor import HOST

SET_UP = """
import sys
from magnum_plugin_host import library
library.set_up(["--config-file", sys.argv[1]])
library.preload()
"""


def run(code: str, folder: Path) -> str:
    """What the code prints, after the library is set up, in a process of its own."""
    config = folder / "magnum.conf"
    config.write_text("[certificates]\ncert_manager_type = x509keypair\n")
    done = subprocess.run(
        [sys.executable, "-B", "-c", SET_UP + code, str(config)],
        cwd=HOST,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_call_pays_for_sql_or_pages(tmp_path: Path) -> None:
    code = 'print(sorted({"jinja2", "pygments", "sqlalchemy", "pecan"} & set(sys.modules)))'
    assert run(code, tmp_path) == "['pecan']\n"


def test_a_driver_that_imports_them_gets_them(tmp_path: Path) -> None:
    code = "import jinja2, sqlalchemy\nprint(jinja2.Template('{{ 1 }}').render(), sqlalchemy.__name__)"
    assert run(code, tmp_path) == "1 sqlalchemy\n"


def test_a_driver_that_starts_transactions_gets_the_real_module(tmp_path: Path) -> None:
    code = """
from oslo_db.sqlalchemy import enginefacade
print(type(enginefacade.reader).__name__)
from oslo_db.sqlalchemy import enginefacade
print(type(enginefacade).__name__)
from magnum.db.sqlalchemy import models
print(models.Cluster.__name__)
"""
    assert run(code, tmp_path) == "_TransactionContextManager\nmodule\nCluster\n"
