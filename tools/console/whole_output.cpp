#include "tools/console/whole_output.hpp"

#include "runtime/text/file_size_limit.hpp"

#include <cerrno>
#include <system_error>

namespace ringmaster {

int with_whole_output(const std::string& who, std::FILE* out, std::FILE* err, int failed_status,
                      const std::function<int()>& work) {
  survive_file_size_limit();
  int status = failed_status;
  int reason = 0;
  try {
    status = work();
  } catch (const std::system_error& problem) { // fmt's, of a text that the stream's buffer did not hold
    if (std::ferror(out) == 0 && std::ferror(err) == 0)
      throw;
    reason = problem.code().value();
  }
  errno = 0;
  if (std::fflush(out) != 0 && errno != 0)
    reason = errno;
  if (std::ferror(out) == 0)
    return status;
  auto text = who + ": not all of the output could be written";
  if (reason != 0)
    text += ": " + file_problem_text(reason);
  std::fputs((text + "\n").c_str(), err); // which may be as full: no exception
  return status == 0 ? failed_status : status;
}

} // namespace ringmaster
