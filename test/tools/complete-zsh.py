"""The words that zsh offers for the last word of a line: complete-zsh.py COMPLETION LINE

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

zsh completes in its line editor only, so that it runs in a terminal. A widget lists what was offered, between marks.
"""
import os
import pty
import re
import select
import sys
import time

SETUP = r"""
PS1='' PS2='' ; unsetopt zle_bracketed_paste prompt_cr prompt_sp 2>/dev/null; stty -echo 2>/dev/null
autoload -Uz compinit; compinit -u -d ./dump
source {completion}
zstyle ':completion:*' list-grouped no
compadd() {{ local -a words displayed given; given=("$@")
  builtin compadd -O words "$@"; (( $#words )) && print -rl -- $words >> {answer}
  builtin compadd "$@" }}
show() {{ zle complete-word; print done >> {answer}.done }}
zle -N show; zle -C complete-word complete-word _main_complete
bindkey '^X' show
zle-line-init() {{ print ready > {answer}.ready }}; zle -N zle-line-init
"""


def main():
    completion, line = sys.argv[1:]
    answer = os.path.abspath(f"answer-{os.getpid()}")
    with open(answer + ".zsh", "w") as file:
        file.write(SETUP.format(completion=completion, answer=answer))
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "dumb"
        os.execvp("zsh", ["zsh", "-f", "-i"])
    os.write(terminal, f"source {answer}.zsh\n".encode())
    drain = lambda: select.select([terminal], [], [], 0)[0] and os.read(terminal, 65536)
    for mark in (".ready", ".done"):
        if mark == ".done":
            os.write(terminal, line.encode() + b"\x18")
        for _ in range(400):
            drain()
            if os.path.exists(answer + mark):
                break
            time.sleep(0.02)
        else:
            sys.exit("zsh does not answer")
    os.close(terminal)
    if os.path.exists(answer):
        with open(answer) as file:
            words = {re.sub(r"\\(.)", r"\1", word) for word in file.read().split("\n")}
        last = line.split(" ")[-1]
        for word in sorted(words):
            if word.startswith(last):
                print(word + ("/" if os.path.isdir(word) else ""))


main()
