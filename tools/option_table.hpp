#pragma once

#include <caf/error.hpp>

#include <functional>
#include <map>
#include <span>
#include <string>

namespace ringmaster {

/// What a command's options set. An option is written "--name VALUE" or "--name=VALUE"; --help and -h are always there.
class option_table {
public:
  using setter = std::function<caf::error(const std::string& value)>;

  explicit option_table(std::string command) : command_(std::move(command)) {}

  void flag(const std::string& name, bool& target);
  void value(const std::string& name, setter set);
  void text(const std::string& name, std::string& target);
  void number(const std::string& name, uint32_t& target, uint32_t min, uint32_t max);
  void bytes(const std::string& name, uint64_t& target);
  void duration(const std::string& name, int64_t& target_ps);
  void bandwidth(const std::string& name, double& target);
  /// What stands without a dash; called for each of them.
  void positional(setter set) { positional_ = std::move(set); }

  /// Errors: invalid_argument, naming the option, the value and what is allowed.
  caf::error read(std::span<const std::string> args);
  bool help() const noexcept { return help_; }

private:
  std::string command_;
  std::map<std::string, setter> values_;
  std::map<std::string, bool*> flags_;
  setter positional_;
  bool help_ = false;
};

} // namespace ringmaster
