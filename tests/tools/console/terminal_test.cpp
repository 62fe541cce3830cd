#include "tools/console/terminal.hpp"

#include "runtime/journal/journal_store.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/records.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/options/commands.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <stdlib.h>
#include <unistd.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// A pseudo-terminal: what is written to `stream()` can be read back.
class pseudo_terminal {
public:
  pseudo_terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0)
      std::abort();
    stream_ = ::fdopen(::open(::ptsname(master_), O_RDWR | O_NOCTTY), "w");
    if (stream_ == nullptr)
      std::abort();
  }
  pseudo_terminal(const pseudo_terminal&) = delete;
  pseudo_terminal& operator=(const pseudo_terminal&) = delete;
  ~pseudo_terminal() {
    std::fclose(stream_);
    ::close(master_);
  }

  std::FILE* stream() const { return stream_; }
  /// What was written, up to the line that is `last`.
  std::string read_until(const std::string& last) {
    std::fflush(stream_);
    std::string text;
    char next = 0;
    while (text.find(last) == std::string::npos && ::read(master_, &next, 1) == 1)
      text += next;
    return text;
  }

private:
  int master_;
  std::FILE* stream_;
};

/// NO_COLOR for as long as this lives.
class no_color {
public:
  explicit no_color(std::optional<std::string> value) {
    if (auto* before = std::getenv("NO_COLOR"))
      before_ = before;
    set(value);
  }
  no_color(const no_color&) = delete;
  no_color& operator=(const no_color&) = delete;
  ~no_color() { set(before_); }

private:
  static void set(const std::optional<std::string>& value) {
    value ? ::setenv("NO_COLOR", value->c_str(), 1) : ::unsetenv("NO_COLOR");
  }

  std::optional<std::string> before_;
};

} // namespace

TEST_CASE("terminal: colours on a terminal only, and not where NO_COLOR says so") {
  pseudo_terminal somewhere;
  auto painted = [&] { return terminal{somewhere.stream()}.warning("late"); };
  {
    no_color unset{std::nullopt};
    CHECK(painted() == "\033[33mlate\033[0m");
    CHECK(captured([](auto out, auto) { return std::fputs(terminal{out}.bad("late").c_str(), out); }).out == "late");
  }
  {
    no_color empty{""};
    CHECK(painted() == "\033[33mlate\033[0m");
  }
  no_color set{"1"};
  CHECK(painted() == "late");
}

TEST_CASE("terminal: the log has its colours from it") {
  temporary_directory dir;
  {
    journal_store::options opts;
    opts.dir = dir.path();
    auto journal = journal_store::open(opts);
    REQUIRE(journal);
    REQUIRE(!(*journal)->append(std::vector<proto::Record>{device_died(3, "killed", 6)}));
  }
  std::vector<std::string> args{dir.path().string(), "--relative"};
  pseudo_terminal somewhere;
  {
    no_color unset{std::nullopt};
    CHECK(log_command().run(args, somewhere.stream(), stderr) == 0);
    auto coloured = somewhere.read_until("\n");
    CHECK(coloured.starts_with("\033[3"));
    CHECK(coloured.find("killed") != std::string::npos);
    CHECK(coloured.find("\033[0m") != std::string::npos);
  }
  no_color set{"1"};
  CHECK(log_command().run(args, somewhere.stream(), stderr) == 0);
  auto plain = somewhere.read_until("\n");
  CHECK(plain.find("killed") != std::string::npos);
  CHECK(plain.find('\033') == std::string::npos);
}
