#include "gateway/http/metrics/process_metrics.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

namespace ringmaster::gateway {

namespace {

/// A field of /proc/self/stat, counted from 1, as proc(5) does; fields up to 2 are not available.
uint64_t stat_field(size_t number) {
  std::ifstream file{"/proc/self/stat"};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto name_end = text.rfind(')'); // the program's name may contain anything
  if (name_end == std::string::npos)
    return 0;
  std::istringstream fields{text.substr(name_end + 1)};
  std::string value;
  for (size_t i = 2; i < number && fields >> value; ++i)
    ;
  return value.empty() ? 0 : std::strtoull(value.c_str(), nullptr, 10);
}

double boot_time() {
  std::ifstream file{"/proc/stat"};
  for (std::string word; file >> word;)
    if (word == "btime") {
      double seconds = 0;
      file >> seconds;
      return seconds;
    }
  return 0;
}

} // namespace

void write_process(metric_page& page) {
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& x) {
    return static_cast<double>(x.tv_sec) + static_cast<double>(x.tv_usec) / 1e6;
  };
  std::error_code none;
  const auto descriptors = std::distance(std::filesystem::directory_iterator{"/proc/self/fd", none}, {});
  page.counter("process_cpu_seconds_total", "Processor time of the gateway.")
    .add(seconds(used.ru_utime) + seconds(used.ru_stime));
  page.gauge("process_resident_memory_bytes", "Resident memory of the gateway.").add(stat_field(24) * page_bytes);
  page.gauge("process_virtual_memory_bytes", "Virtual memory of the gateway.").add(stat_field(23));
  page.gauge("process_open_fds", "Open descriptors of the gateway.").add(static_cast<uint64_t>(descriptors));
  page.gauge("process_start_time_seconds", "Start of the gateway, as Unix time.")
    .add(boot_time() + static_cast<double>(stat_field(22)) / ticks);
}

} // namespace ringmaster::gateway
