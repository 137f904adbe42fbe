"""`gnomon completion SHELL`: the script that a shell reads once, after which Tab completes commands and options.

bash:  eval "$(gnomon completion bash)"          in ~/.bashrc
zsh:   eval "$(gnomon completion zsh)"           in ~/.zshrc
fish:  gnomon completion fish | source           in ~/.config/fish/config.fish
"""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in SHELL.

    In ~/.bashrc: eval "$(gnomon completion bash)"
    """
    script = SHELLS[shell](ctx.find_root().command, {}, "gnomon", "_GNOMON_COMPLETE")
    # ShellComplete.source() would run bash to ask its version; the template alone needs no shell.
    click.echo(script.source_template % script.source_vars())


__all__ = ["command"]
