#pragma once

#include <cstdlib>
#include <string>

namespace holdfast::tests {

/// A variable of the environment, until the end of a test.
class Variable {
public:
    Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
    ~Variable() { unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
};

}  // namespace holdfast::tests
