#include "runtime/launchers/slurm_hosts.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

using hosts = std::vector<std::string>;
using tasks = std::vector<uint32_t>;

std::string refusal_of_hosts(std::string_view text) {
  auto result = slurm_hosts(text);
  return result ? "accepted" : render(result.error());
}

std::string refusal_of_tasks(std::string_view text) {
  auto result = slurm_tasks(text);
  return result ? "accepted" : render(result.error());
}

} // namespace

TEST_CASE("slurm_hosts: expands ranges") {
  CHECK(*slurm_hosts("alpha") == hosts{"alpha"});
  CHECK(*slurm_hosts("a,b.example") == hosts{"a", "b.example"});
  CHECK(*slurm_hosts("a[1-3,7],b") == hosts{"a1", "a2", "a3", "a7", "b"});
  CHECK(*slurm_hosts("n[5]-ib") == hosts{"n5-ib"});
  CHECK(*slurm_hosts("a[1-2],b[3-4]") == hosts{"a1", "a2", "b3", "b4"});
}

TEST_CASE("slurm_hosts: keeps leading zeroes, and combines two ranges") {
  CHECK(*slurm_hosts("n[08-10]") == hosts{"n08", "n09", "n10"});
  CHECK(*slurm_hosts("n[009,010]") == hosts{"n009", "n010"});
  CHECK(*slurm_hosts("r[1-2]n[1-2]") == hosts{"r1n1", "r1n2", "r2n1", "r2n2"});
}

TEST_CASE("slurm_hosts: an error has the reason") {
  CHECK(refusal_of_hosts("") == "\"\" is no SLURM list of hosts: a name is empty");
  CHECK(refusal_of_hosts("a,,b") == "\"a,,b\" is no SLURM list of hosts: a name is empty");
  CHECK(refusal_of_hosts("a,") == "\"a,\" is no SLURM list of hosts: a name is empty");
  CHECK(refusal_of_hosts("a[1-3") == "\"a[1-3\" is no SLURM list of hosts: a '[' without its ']'");
  CHECK(refusal_of_hosts("a1]") == "\"a1]\" is no SLURM list of hosts: a ']' without its '['");
  for (auto range : {"", "3-1", "x", "1-", "-1", "1--2", "1,", "99999999999"})
    CHECK(refusal_of_hosts(std::string{"a["} + range + "]").find("is neither a number nor a range of rising numbers")
          != std::string::npos);
  for (auto many : {"a[1-999999999]", "a[1-999]b[1-999]", "a[1-60000],b[1-60000]", "a[1-9999]b[1-9999]c[1-9999]"})
    CHECK(refusal_of_hosts(many).find("it names more than 65536 hosts") != std::string::npos);
}

TEST_CASE("slurm_tasks: a count may be for several hosts") {
  CHECK(*slurm_tasks("4") == tasks{4});
  CHECK(*slurm_tasks("2(x3),1") == tasks{2, 2, 2, 1});
  CHECK(*slurm_tasks("1,2(x2)") == tasks{1, 2, 2});
  for (auto text : {"", "x", "2(x3", "2(x)", "2(x0)", "2x3", "1,", "-1", "2(3)"})
    CHECK(refusal_of_tasks(text).find("is neither TASKS nor TASKS(xHOSTS)") != std::string::npos);
  CHECK(refusal_of_tasks("1(x99999999)").find("more than 65536 hosts") != std::string::npos);
}
