#pragma once

#include "runtime/text/json/json_value.hpp"

#include <doctest/doctest.h>

#include <string>

namespace ringmaster::test {

/// The value of this name in an object; the test case fails if it is missing.
inline const json_value& member(const json_value& x, const std::string& name) {
  for (size_t i = 0; i < x.keys.size(); ++i)
    if (x.keys[i].name == name)
      return x.entries[i];
  FAIL("there is no member " << name);
  return x;
}

} // namespace ringmaster::test
