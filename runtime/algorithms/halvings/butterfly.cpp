#include "runtime/algorithms/halvings/butterfly.hpp"

#include "runtime/schedule/collective.hpp"

#include <bit>

namespace ringmaster {

namespace {

/// The sums of one rank. Each arises in another place than the one before.
class sums {
public:
  /// `arising`: how many will arise; the last one in the output.
  sums(schedule_builder& b, uint32_t arising) : b_(b), left_(arising), now_{buffer::input, 0, b.request.count} {
    if (arising > 1)
      b.scratch(b.request.count);
  }

  const block_range& now() const { return now_; }

  /// Takes what comes in from `peer` into the next sum.
  void add(uint32_t round, uint32_t peer) {
    --left_;
    const block_range next{left_ % 2 == 0 ? buffer::output : buffer::scratch, 0, now_.count};
    b_.recv_reduce(round, peer, now_, next, left_ == 0);
    now_ = next;
  }

private:
  schedule_builder& b_;
  uint32_t left_;
  block_range now_;
};

} // namespace

schedule plan_butterfly_all_reduce(const plan_request& request) {
  schedule_builder b{request};
  const auto doubling = std::bit_floor(request.world_size); // ranks that take part in it
  const auto exchanges = static_cast<uint32_t>(std::countr_zero(doubling));
  const uint32_t folds = request.world_size == doubling ? 0 : 1;
  const auto rounds = exchanges + 2 * folds;
  const block_range output{buffer::output, 0, request.count};
  if (request.rank >= doubling) {
    b.send(0, request.rank - doubling, {buffer::input, 0, request.count});
    b.recv(rounds - 1, request.rank - doubling, output);
    return b.take(rounds);
  }
  const auto is_partner = request.rank + doubling < request.world_size;
  sums sum{b, exchanges + (is_partner ? 1 : 0)};
  if (is_partner)
    sum.add(0, request.rank + doubling);
  for (uint32_t k = 0; k < exchanges; ++k) {
    const auto peer = request.rank ^ (uint32_t{1} << k);
    b.send(folds + k, peer, sum.now());
    sum.add(folds + k, peer);
  }
  if (is_partner)
    b.send(rounds - 1, request.rank + doubling, output);
  return b.take(rounds);
}

algorithm_cost cost_of_butterfly_all_reduce(const plan_request& request) {
  const uint64_t exchanges = std::bit_width(request.world_size) - 1;
  const uint64_t folds = std::has_single_bit(request.world_size) ? 0 : 1;
  const auto rounds = exchanges + 2 * folds;
  return {rounds, (exchanges + folds) * request.count, exchanges + folds, rounds, rounds * request.count};
}

} // namespace ringmaster
