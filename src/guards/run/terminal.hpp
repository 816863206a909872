#pragma once

/// The terminal that `run` shares with its command and its caller.
namespace holdfast::guards::run {

/// A terminal that this session is controlled by, or -1.
[[nodiscard]] int controlling_terminal();

/// Gives `terminal` to our process group if the group that had it is dead: nobody else could read from it.
void take_terminal_from_the_dead(int terminal);

}  // namespace holdfast::guards::run
