#include "runtime/text/file_size_limit.hpp"

#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/resource.h>

namespace ringmaster {

uint64_t file_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return UINT64_MAX;
  return limit.rlim_cur;
}

void survive_file_size_limit() {
  struct sigaction now {};
  if (::sigaction(SIGXFSZ, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL)
    ::signal(SIGXFSZ, SIG_IGN);
}

std::string file_size_limit_text() {
  return bytes_text(file_size_limit());
}

std::string file_size_advice(int code) {
  if (code != EFBIG || file_size_limit() == UINT64_MAX)
    return {};
  return fmt::format(": the limit on the size of a file is {} for this process; `ulimit -f unlimited` raises it",
                     file_size_limit_text());
}

std::string file_problem_text(int code) {
  return std::strerror(code) + file_size_advice(code);
}

} // namespace ringmaster
