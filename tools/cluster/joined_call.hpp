#pragma once

#include "client/client.hpp"
#include "tools/options/configured_call.hpp"

namespace ringmaster {

/// A call of a command that sends requests to the coordinator of a running cluster.
class joined_call : public configured_call {
protected:
  /// `command`: "ringmaster drain".
  explicit joined_call(const char* command) : command_(command) {}

  const char* command() const noexcept { return command_; }
  /// --timeout, for connecting to the coordinator.
  void timeout_option(option_table& table);
  /// Connects, then calls `run_with`.
  caf::expected<int> run(const console& to) final;
  virtual caf::expected<int> run_with(client& user, const console& to) = 0;

private:
  const char* command_;
};

} // namespace ringmaster
