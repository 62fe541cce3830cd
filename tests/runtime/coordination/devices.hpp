#pragma once

#include "runtime/coordination/device_registry.hpp"

#include <doctest/doctest.h>

namespace ringmaster::test {

/// A device as it joins, without handles.
inline known_device joining(uint64_t id, uint64_t bytes = 100) {
  known_device result;
  result.metadata.mutable_deviceid()->set_value(id);
  result.metadata.mutable_minmemaddr()->set_value(id << 40);
  result.metadata.mutable_maxmemaddr()->set_value((id << 40) + bytes);
  return result;
}

} // namespace ringmaster::test
