"""The `alcove` command: what it is called and what each verb is for. The work lies in the modules beside."""

import sys
from importlib import metadata
from typing import Annotated, NoReturn

import typer

from infra.cli.home import ROOT, Trouble
from infra.setup.say import StepFailed

app = typer.Typer(
    help="Alcove: every person an AI assistant of their own.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
admin = typer.Typer(help="Who looks after this Alcove.", no_args_is_help=True)
app.add_typer(admin, name="admin")
price = typer.Typer(help="The reviewed price file.", no_args_is_help=True)
app.add_typer(price, name="price")
ledger = typer.Typer(help="The meter's ledger.", no_args_is_help=True)
app.add_typer(ledger, name="ledger")


@app.command()
def run() -> None:
    """Start everything on this machine's loopback; Ctrl-C ends it."""
    from infra.cli.run import run as work  # each verb loads its own work only

    raise SystemExit(work())


@app.command()
def init(
    public_url: Annotated[
        str, typer.Option(help="What people will type, e.g. https://alcove.example.org")
    ] = "",
) -> None:
    """Write .env for Docker Compose, once. An existing one is left as it is."""
    from infra.cli.init import init as work

    work(ROOT / ".env", public_url)


@app.command()
def images() -> None:
    """Build the images that Docker Compose starts, and their bases where no registry answers."""
    from infra.setup.images import build_all

    build_all()


@app.command()
def down() -> None:
    """Stop tenants, then the services of Docker Compose. Volumes stay."""
    from infra.cli.compose import down as work

    work()


@admin.command()
def link() -> None:
    """Print a one-time link (15 minutes) that makes whoever opens it an admin."""
    from infra.cli.links import admin as work

    work()


@app.command("password-link")
def password_link(email: Annotated[str, typer.Argument(help="The account's e-mail")]) -> None:
    """Print a one-time link (an hour) for a new password; it signs out every device of that account."""
    from infra.cli.links import password as work

    work(email)


@price.command("import")
def price_import(
    model: Annotated[list[str] | None, typer.Argument(help="These alone: provider/model")] = None,
    write: Annotated[bool, typer.Option(help="Add the rows; else only tell")] = False,
    add: Annotated[list[str] | None, typer.Option(help="Take a new model too")] = None,
    accept: Annotated[list[str] | None, typer.Option(help="Take an unlikely change")] = None,
    file: Annotated[str, typer.Option(help="Another price file than the meter's own")] = "",
) -> None:
    """Compare the price file with the installed genai-prices package, and add what is new."""
    from infra.cli.meter import price_import as work

    chosen = {"--add": add or (), "--accept": accept or (), "--file": [file] if file else ()}
    raise SystemExit(work(model or (), write=write, chosen=chosen))


@ledger.command()
def verify() -> None:
    """Prove that sums and entries of this data directory's ledger agree; 1 where they do not."""
    from infra.cli.meter import ledger_verify as work

    raise SystemExit(work())


@app.command()
def doctor() -> None:
    """Say what this machine has and lacks, and what each lack costs."""
    from infra.cli.doctor import doctor as work

    raise SystemExit(work())


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(installed_version())


def installed_version() -> str:
    """The version of this clone, by its pyproject.toml; of the installed package where there is none."""
    import tomllib

    try:
        return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    except OSError:
        return metadata.version("alcove")


def main() -> NoReturn:
    """Run the command line; a Trouble, or what the machine refuses, is told in its own words and ends with 1."""
    try:
        app(prog_name="alcove")  # whichever way it was called
    except (Trouble, StepFailed) as trouble:
        print(trouble, file=sys.stderr)
        raise SystemExit(1) from None
    except OSError as error:
        print(f"The machine refused: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    raise SystemExit(0)
