#pragma once

#include <string>
#include <string_view>

/// One line on standard error that says what is going on. Without a terminal, one for each thing that is done.
namespace holdfast::bench {

void show_progress(const std::string& what);
/// `what` is done.
void end_progress(std::string_view what);

}  // namespace holdfast::bench
