// Boost.JSON without a library to link: this file is the library.
#include <boost/json/src.hpp>
