#pragma once

#include "runtime/configuration/options.hpp"
#include "runtime/metadata/metadata_store.hpp"
#include "tools/options/commands.hpp"

#include <functional>
#include <memory>

namespace ringmaster {

/// Opens the store that several coordinators share, and waits until this process leads. With `standby` it waits for any
/// length of time. `stop` is asked now and then: whether to give up. Errors: in_use, aborted, those of the store.
using shared_store_opener = std::function<caf::expected<std::unique_ptr<metadata_store>>(
  const options& opts, bool standby, const std::function<bool()>& stop)>;

/// `ringmaster coordinator` in a program that can reach such a store.
tool_command coordinator_command(shared_store_opener open_shared);

} // namespace ringmaster
