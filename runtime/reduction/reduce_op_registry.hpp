#pragma once

#include "messages/types.pb.h"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// A reduction that is not built in. Every process that has devices must have registered it before a collective names
/// it, and alike: ranks do not send code.
struct user_reduce_op {
  /// out[i] = a[i] op b[i] for `count` elements, which need not be aligned; `out` may be `a` or `b`. Each element on
  /// its own: a call may be for any part of the memory. Called by several threads at once; must not throw. To be
  /// independent of the algorithm it must be associative and commutative, or the communicator deterministic.
  std::function<void(proto::DataType type, const std::byte* a, const std::byte* b, std::byte* out, uint64_t count)>
    apply;
  std::vector<proto::DataType> datatypes; ///< That it takes.
};

/// Makes `op` known in this process, for good. Errors: invalid_argument: the name is empty, a built-in reduction's or
/// taken, there is no function, no datatype or one that does not exist.
caf::error register_reduce_op(std::string name, user_reduce_op op);

/// Takes a lock: look up once an operation, not once a block. Errors: invalid_argument, naming what there is, or which
/// datatypes it takes.
caf::expected<std::shared_ptr<const user_reduce_op>> find_reduce_op(std::string_view name, proto::DataType type);

} // namespace ringmaster
