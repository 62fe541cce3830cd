#include "runtime/reduction/reduce_op_registry.hpp"

#include "messages/errc.hpp"
#include "runtime/reduction/reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace ringmaster {

namespace {

struct registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const user_reduce_op>, std::less<>> ops;
};

registry& the_registry() {
  static registry result;
  return result;
}

template <class Range, class Name>
std::string listed(const Range& range, Name&& name) {
  std::string result;
  for (const auto& x : range)
    result += fmt::format("{}{}", result.empty() ? "" : ", ", name(x));
  return result;
}

} // namespace

caf::error register_reduce_op(std::string name, user_reduce_op op) {
  const auto refused = [&](std::string_view why) {
    return make_error(errc::invalid_argument, fmt::format("the reduction \"{}\" cannot be registered: {}", name, why));
  };
  if (name.empty())
    return refused("it needs a name");
  if (parse_reduce_op(name) || name == name_of(gpu_sim::USER))
    return refused("the name means a built-in one");
  if (!op.apply)
    return refused("it has no function");
  if (op.datatypes.empty())
    return refused("it takes no datatype");
  if (std::any_of(op.datatypes.begin(), op.datatypes.end(), [](auto type) { return size_of(type) == 0; }))
    return refused("it takes a datatype that does not exist");
  auto stored = std::make_shared<const user_reduce_op>(std::move(op));
  auto& known = the_registry();
  const std::lock_guard guard{known.mutex};
  if (!known.ops.try_emplace(name, std::move(stored)).second)
    return refused("there is one of that name");
  return caf::none;
}

caf::expected<std::shared_ptr<const user_reduce_op>> find_reduce_op(std::string_view name, proto::DataType type) {
  auto& known = the_registry();
  const std::lock_guard guard{known.mutex};
  const auto found = known.ops.find(name);
  if (found == known.ops.end()) {
    const auto names = listed(known.ops, [](const auto& entry) { return entry.first; });
    return make_error(errc::invalid_argument, fmt::format("no reduction \"{}\" is registered in this process; there {}",
                                                          name, names.empty() ? "is none" : "are " + names));
  }
  const auto& datatypes = found->second->datatypes;
  if (std::find(datatypes.begin(), datatypes.end(), type) == datatypes.end()) {
    const auto names = listed(datatypes, [](auto x) { return name_of(x); });
    return make_error(errc::invalid_argument,
                      fmt::format("the reduction \"{}\" does not take {}, but {}", name, name_of(type), names));
  }
  return found->second;
}

} // namespace ringmaster
