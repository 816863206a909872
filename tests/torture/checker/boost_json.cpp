// Boost.JSON without a library to link, and without the product's copy of it.
#include <boost/json/src.hpp>
