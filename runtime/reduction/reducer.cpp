#include "runtime/reduction/reducer.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/announced_access.hpp"
#include "runtime/reduction/bulk_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ringmaster {

namespace {

/// Whether a chain had better write past the caches. Measured on Zen 4: 0.75 of the time with two inputs, 0.85 with
/// eight. In place, the line to write has just been read.
bool streams(std::span<const std::byte* const> inputs, const std::byte* out, uint64_t touched_bytes) {
  return writes_past_caches(touched_bytes) && std::find(inputs.begin(), inputs.end(), out) == inputs.end();
}

} // namespace

caf::expected<reducer> reducer::of(proto::DataType type, gpu_sim::ReduceOp op, std::string_view user_op) {
  if (size_of(type) == 0)
    return make_error(errc::invalid_argument, fmt::format("there is no datatype of number {}", static_cast<int>(type)));
  reducer result{type, op};
  result.kernels_.datatype = datatype_kernels_for(type, best_instruction_set());
  if (op == gpu_sim::USER) {
    TRY(found, find_reduce_op(user_op, type));
    result.user_ = std::move(*found);
    return result;
  }
  result.kernels_.operation = operation_kernels_for(type, op, best_instruction_set());
  if (result.kernels_.operation.pair == nullptr)
    return make_error(errc::invalid_argument,
                      gpu_sim::ReduceOp_IsValid(op)
                        ? fmt::format("the datatype {} was registered without {}", name_of(type), name_of(op))
                        : fmt::format("there is no reduction of number {}", static_cast<int>(op)));
  return result;
}

caf::expected<reducer> reducer::of_transfer(const gpu_sim::TransferReduction& x, uint64_t bytes) {
  constexpr std::array possible{gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX};
  if (std::ranges::find(possible, x.op()) == possible.end())
    return invalid(fmt::format("a transfer reduces by sum, prod, min or max, not by {}",
                               gpu_sim::ReduceOp_IsValid(x.op()) ? std::string{name_of(x.op())}
                                                                 : fmt::format("number {}", static_cast<int>(x.op()))));
  TRY(result, of(x.datatype(), x.op()));
  if (const auto element_bytes = size_of(x.datatype()); bytes % element_bytes != 0)
    return invalid(fmt::format("a transfer that reduces has whole elements, and {} bytes are no multiple of the {} "
                               "bytes of a {}",
                               bytes, element_bytes, name_of(x.datatype())));
  return std::move(*result);
}

void reducer::operator()(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) const {
  const auto bytes = count * kernels_.datatype.element_bytes;
  announce_read(a, bytes);
  announce_read(b, bytes);
  announce_write(out, bytes);
  if (user_ != nullptr)
    user_->apply(type_, a, b, out, count);
  else
    reduce_pair(kernels_, a, b, out, count);
}

void reducer::finish(uint32_t world_size, std::byte* values, uint64_t count) const {
  if (op_ != gpu_sim::AVG)
    return;
  ensure(world_size > 0, "a reduction has ranks");
  announce_write(values, count * kernels_.datatype.element_bytes);
  divide_values(kernels_.datatype, values, count, world_size);
}

double reducer::scale_before(uint32_t world_size) const {
  const bool may_scale = op_ == gpu_sim::AVG || op_ == gpu_sim::PREMUL_SUM;
  return may_scale && kernels_.datatype.unscale != nullptr ? scale_for(world_size) : 1;
}

void reducer::add_scaled(const scaled_operands& of, std::byte* out, uint64_t count) const {
  const auto bytes = count * kernels_.datatype.element_bytes;
  announce_read(of.a, bytes);
  announce_read(of.b, bytes);
  announce_write(out, bytes);
  reduce_scaled_pair(kernels_.datatype, of, out, count);
}

void reducer::finish_scaled(uint32_t world_size, std::byte* values, uint64_t count) const {
  ensure(world_size > 0, "a reduction has ranks");
  announce_write(values, count * kernels_.datatype.element_bytes);
  unscale_values(kernels_.datatype, values, count,
                 unscaling(op_ == gpu_sim::AVG ? world_size : 0, scale_before(world_size)));
}

void reducer::many(std::span<const std::byte* const> inputs, std::byte* out, uint64_t count, bool finish,
                   uint32_t world_size, uint64_t touched_bytes) const {
  ensure(!inputs.empty(), "a reduction has inputs");
  const auto bytes = count * kernels_.datatype.element_bytes;
  touched_bytes = std::max(touched_bytes, (inputs.size() + 1) * bytes);
  if (inputs.size() == 1) {
    copy_bytes(out, inputs[0], bytes, touched_bytes);
    if (finish)
      this->finish(world_size, out, count);
    return;
  }
  for (auto input : inputs)
    announce_read(input, bytes);
  announce_write(out, bytes);
  if (user_ != nullptr)
    return many_by_user(inputs, out, count);
  const bool divides = finish && op_ == gpu_sim::AVG;
  ensure(!divides || world_size > 0, "an average has ranks");
  reduce_chain(kernels_, inputs, out, count,
               {.divisor = divides ? world_size : 0,
                .streaming = streams(inputs, out, touched_bytes),
                .rescues = finish && (op_ == gpu_sim::AVG || op_ == gpu_sim::PREMUL_SUM)});
}

void reducer::many_by_user(std::span<const std::byte* const> inputs, std::byte* out, uint64_t count) const {
  // In tiles that stay in the first-level cache. Only the last step writes to `out`, which may be any of the inputs.
  alignas(cache_line_bytes) std::array<std::byte, 4096> tile;
  const auto element_bytes = kernels_.datatype.element_bytes;
  const uint64_t whole = tile.size() / element_bytes;
  for (uint64_t first = 0; first < count; first += whole) {
    const auto n = std::min(whole, count - first);
    const auto offset = first * element_bytes;
    reduce_by_pairs(inputs, offset, tile.data(), out + offset,
                    [&](auto a, auto b, auto to) { user_->apply(type_, a, b, to, n); });
  }
}

} // namespace ringmaster
