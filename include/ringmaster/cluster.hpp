#pragma once

#include <ringmaster/errors.hpp>
#include <ringmaster/ids.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace RINGMASTER_API {

class cluster;

/// What a program with `run_main` accepts and how it presents itself.
struct program_options {
  std::string about{};    ///< One sentence, shown by --help of a program without a cluster.
  /// Options of the program itself, "--name": each takes one value, passed to the body in `program_arguments`.
  std::vector<std::string> own_options{};
  bool needs_cluster = true; ///< Without it no configuration is read and no cluster is opened.
  uint32_t devices_min = 0;  ///< Devices of the program's own cluster, where it is configured with fewer.
};

/// Values of the options in `program_options::own_options`, in the order of the command line.
class program_arguments {
public:
  /// The value of an option such as "--svg"; empty where the command line does not have it.
  std::string value_of(std::string_view option) const;
  /// Option and value, one pair for each use.
  std::vector<std::pair<std::string, std::string>> values{};
};

/// A program's main function. Reads the configuration file and the command line ("--section.key=VALUE" for every key of
/// config/caf-application.conf), opens a cluster and calls `body`. --help and --version print and return 0. An unknown
/// option or a value that is not allowed prints one line and returns 2. An error or exception of the body prints one
/// line to stderr and returns 1.
int run_main(int argc, char** argv, const std::function<void(cluster&)>& body);
/// The same for a program with options of its own. `home` is null if `needs_cluster` is false.
int run_main(int argc, char** argv, const program_options& options,
             const std::function<void(cluster* home, const program_arguments&)>& body);

/// A device, a simulated GPU, as the coordinator lists it.
struct device_info {
  device_id id{};             ///< Never used twice.
  uint64_t memory_begin = 0;  ///< First address of its memory.
  uint64_t memory_end = 0;    ///< The address after the last one.
  std::string place{};        ///< "node-2 on hostb, pid 812"; empty for a device in the coordinator's process.
};

/// A cluster as a program uses it: the coordinator that --node.join or the environment's RINGMASTER_COORDINATOR names
/// (caf-run sets it), or one that this process hosts with its own devices. The destructor stops what this process
/// hosts. Handles of clients, communicators and memory must be destroyed before it. Thread-safe.
class cluster {
public:
  /// Opens a cluster. `arguments`: "--section.key=VALUE", as on the command line. `read_configuration`: also read the
  /// configuration file that is installed with the program. Errors: invalid_config and invalid_argument for an argument,
  /// io_error for the file, timed_out where the coordinator does not answer, those of the memory and journal
  /// directories.
  static expected<cluster> open(const std::vector<std::string>& arguments = {}, bool read_configuration = false);

  cluster(cluster&&) noexcept;
  cluster& operator=(cluster&&) noexcept;
  ~cluster();

  /// Waits until at least `devices_min` devices have joined, and lists all. Errors: timed_out, with both numbers;
  /// device_lost where the coordinator has exited.
  expected<std::vector<device_info>> devices(uint32_t devices_min = 0,
                                             std::chrono::nanoseconds within = std::chrono::nanoseconds{0});

  /// Whether the cluster runs in this process.
  bool is_local() const;

  struct state;                                      ///< Internal.
  explicit cluster(std::shared_ptr<state> internals); ///< Internal.
  const std::shared_ptr<state>& internals() const { return state_; } ///< Internal.

private:
  std::shared_ptr<state> state_;
};

} // namespace RINGMASTER_API
