#pragma once

#include "messages/errc.hpp"

#include <caf/error.hpp>
#include <ringmaster/strategy/pending.hpp>

#include <string_view>

namespace ringmaster::training {

/// "rank 3, forward: why", as errc::invalid_argument.
caf::error refused(const pending& x, std::string_view why);
/// The same with the code of `why`.
caf::error refused(const pending& x, const caf::error& why);
/// "rank 3 has never awaited its forward of the input of layer 2, samples 0-3", as errc::invalid_argument.
caf::error misused(const pending& x, std::string_view how);

/// What carries out the operations of a strategy's ranks: a simulator, or devices.
class executor {
public:
  virtual ~executor() = default;

  /// Begins; returns whether it has ended already. Else `x` stays where it is until its waiter is resumed, or for ever
  /// where it has failed.
  virtual bool begin(pending& x) = 0;
  /// For one aside that has been begun: returns whether it has ended; else its waiter is resumed when it has.
  virtual bool await(pending& x) = 0;
  /// The rank has made an error: none of its operations continues.
  virtual void fail(uint32_t rank, caf::error why) = 0;
  virtual bool failed() const = 0;
  virtual void release(uint32_t rank, uint64_t memory) noexcept = 0;
};

} // namespace ringmaster::training
