#pragma once

#include "actors/streams/route.hpp"
#include "actors/streams/walk_buffers.hpp"
#include "runtime/reduction/reducer.hpp"

#include <memory>
#include <optional>

namespace ringmaster {

/// How a walk combines blocks: the reduction of its operation, and the scale of inputs that keeps partial sums from
/// overflowing. Each input is scaled once, before it is added.
class walk_reduction {
public:
  /// `buffers`: of the walk; they outlive this object.
  explicit walk_reduction(const walk_buffers& buffers) : buffers_(buffers) {}

  /// A walk of the buffers' plan starts.
  caf::error prepare();
  /// Copies a piece of the input to where it is staged.
  std::unique_ptr<route> stage(const packed_piece& x) const;
  /// Does a step without another rank.
  std::unique_ptr<route> own_route(const step& todo) const;
  /// Where the bytes of a peer's block go.
  block_sink sink_of(const step& todo, const device_window& its) const;
  /// After the bytes of a step have come.
  void finish(const step& todo) const;

private:
  /// Whether the block is the input of this rank, or of another one, and has not been scaled before it is added.
  bool is_unscaled(const block_range& own) const;
  bool is_unscaled(uint32_t peer, const device_window& its) const;
  /// `unscaled`: the bytes that come are a rank's input, which has not been scaled.
  block_sink sink_of(const step& todo, bool unscaled) const;
  const rank_plan& plan() const { return buffers_.plan(); }

  const walk_buffers& buffers_;
  std::optional<reducer> combine_;
  double scale_ = 1; ///< `reducer::scale_before`.
};

} // namespace ringmaster
