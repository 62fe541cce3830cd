#include "gateway/dialects/dialect.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/text/comma_list.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace ringmaster::gateway {

namespace {

using names = std::vector<std::string>;

const names status_names{"READY", "IN_PROGRESS", "SUCCESS", "FAILED"};
const names reduce_op_names{"NIL", "SUM", "PROD", "MIN", "MAX", "AVG"};

std::optional<int> place_in(const names& all, const std::string& name) {
  auto i = std::ranges::find(all, name);
  return i == all.end() ? std::nullopt : std::optional{static_cast<int>(i - all.begin())};
}

caf::error check_names(const char* key, const names& given, const names& allowed, const names& needed) {
  for (auto& x : given)
    if (!place_in(allowed, x))
      return invalid(fmt::format("{}: \"{}\" is not {}", key, x, choice_text(allowed)));
  if (std::set<std::string>(given.begin(), given.end()).size() != given.size())
    return invalid(fmt::format("{}: a name stands there twice, and each has one number", key));
  for (auto& x : needed)
    if (!place_in(given, x))
      return invalid(fmt::format("{}: {} is missing", key, x));
  return caf::none;
}

} // namespace

int dialect::number_of(gpu_sim::Status status) const {
  auto name = gpu_sim::Status_Name(status);
  return place_in(statuses, name).value_or(0);
}

int dialect::first_status_number() const {
  return place_in(statuses, first_status).value_or(0);
}

caf::expected<gpu_sim::ReduceOp> dialect::reduce_op(int number) const {
  gpu_sim::ReduceOp result = gpu_sim::SUM;
  const bool is_known = number >= 0 && static_cast<size_t>(number) < reduce_ops.size();
  if (is_known && gpu_sim::ReduceOp_Parse(reduce_ops[static_cast<size_t>(number)], &result))
    return result;
  names allowed;
  for (size_t i = 0; i < reduce_ops.size(); ++i)
    if (reduce_ops[i] != "NIL")
      allowed.push_back(fmt::format("{} ({})", i, reduce_ops[i]));
  return invalid(fmt::format("the reduction {} is not {}", number, choice_text(allowed)));
}

caf::expected<std::optional<gpu_sim::TransferReduction>> dialect::send_reduction(int number) const {
  const bool is_nil = number >= 0 && static_cast<size_t>(number) < reduce_ops.size()
                      && reduce_ops[static_cast<size_t>(number)] == "NIL";
  if (send_op == send_op_use::ignored || is_nil)
    return std::optional<gpu_sim::TransferReduction>{};
  TRY(op, reduce_op(number));
  gpu_sim::TransferReduction result;
  result.set_op(*op);
  result.set_datatype(datatype);
  return std::optional{result};
}

caf::expected<uint64_t> dialect::elements(uint64_t given) const {
  if (count == count_unit::elements)
    return given;
  if (given % size_of(datatype) != 0)
    return invalid(fmt::format("the count is in bytes, and {} is no multiple of the {} bytes of an element", given,
                               size_of(datatype)));
  return given / size_of(datatype);
}

uint64_t dialect::bytes_of(uint64_t elements) const {
  return elements * size_of(datatype);
}

caf::error dialect::check() const {
  if (auto problem = check_names("status", statuses, status_names, {"IN_PROGRESS", "SUCCESS", "FAILED"}))
    return problem;
  if (!place_in(statuses, first_status))
    return invalid(fmt::format("first-status: \"{}\" is not one of the statuses: {}", first_status,
                               fmt::join(statuses, ", ")));
  return check_names("reduce-op", reduce_ops, reduce_op_names, {"SUM"});
}

} // namespace ringmaster::gateway
