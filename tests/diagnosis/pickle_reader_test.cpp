// Pickles are read without executing anything, whatever they contain.
#include "diagnosis/readers/dump_tree.hpp"
#include "diagnosis/readers/file_evidence.hpp"
#include "diagnosis/writers/flight_recorder_writer.hpp"
#include "diagnosis/writers/pickle_writer.hpp"
#include "messages/errc.hpp"
#include "tests/diagnosis/hung_jobs/hung_job.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <random>

namespace ringmaster::test {

namespace {

using namespace diagnosis;
using namespace std::string_literals;

std::string problem_of(const std::string& bytes) {
  auto read = parse_pickle(bytes);
  if (read)
    return {};
  CHECK(code_of(read.error()) == errc::corrupt);
  return render(read.error());
}

std::string small_dump() {
  static const auto job = *hang(programs_of("ddp"), job_fault::stops, 1);
  auto rank = job.records.ranks.front();
  rank.calls.resize(6);
  return flight_recorder_dump(job.records, rank);
}

/// What python3 prints, or nothing where it is not installed.
std::string python(const std::string& script, const std::string& dir) {
  std::ofstream{dir + "/script.py"} << script;
  std::string result;
  auto* pipe = ::popen(fmt::format("cd {} && python3 script.py 2>&1", dir).c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  for (size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, pipe)) != 0;)
    result.append(buffer, count);
  ::pclose(pipe);
  return result;
}

} // namespace

TEST_CASE("pickle reader: reads what the writer writes") {
  pickle_writer out;
  out.open_map();
  out.text("numbers");
  out.open_list();
  for (int64_t x : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{65536}, int64_t{-1}, INT64_MAX, INT64_MIN})
    out.integer(x);
  out.close_list();
  out.text("numbers again");
  out.boolean(true);
  out.text("numbers");
  out.none();
  out.close_map();
  const auto bytes = std::move(out).finish();
  auto read = parse_pickle(bytes);
  REQUIRE_MESSAGE(read, render(read.error()));
  CHECK(read->tree.entries(read->root).size() == 6);
  CHECK(read->tree.at(read->root, "numbers")->type == dump_value::kind::none); // the last of equal keys
  auto numbers = read->tree.entries(read->tree.entries(read->root)[1]);
  REQUIRE(numbers.size() == 7);
  CHECK(numbers[5].integer == INT64_MAX);
  CHECK(numbers[6].integer == INT64_MIN);
  CHECK(numbers[4].integer == -1);
}

TEST_CASE("pickle reader: refuses every opcode that would name, call or build an object, with its offset") {
  const std::pair<std::string, std::string> all[]{{"\x80\x02"s
                                                   "cos\nsystem\n.",
                                                   "GLOBAL"},
                                                  {"\x80\x04\x8c\x02os\x8c\x06system\x93."s, "STACK_GLOBAL"},
                                                  {"\x80\x02NNR."s, "REDUCE"},
                                                  {"(ios\nsystem\n.", "INST"},
                                                  {"(No.", "OBJ"},
                                                  {"\x80\x02NNb."s, "BUILD"},
                                                  {"\x80\x02NN\x81."s, "NEWOBJ"},
                                                  {"\x80\x04NNN\x92."s, "NEWOBJ_EX"},
                                                  {"Pfile\n.", "PERSID"},
                                                  {"\x80\x02NQ."s, "BINPERSID"},
                                                  {"\x80\x02\x82\x01."s, "EXT1"},
                                                  {"\x80\x02\x83\x01\x00."s, "EXT2"},
                                                  {"\x80\x02\x84\x01\x00\x00\x00."s, "EXT4"},
                                                  {"\x80\x05\x97."s, "NEXT_BUFFER"}};
  for (auto& [bytes, name] : all) {
    auto problem = problem_of(bytes);
    CAPTURE(problem);
    CHECK(problem.find("the opcode " + name + " would name, call or build an object") != std::string::npos);
    CHECK(problem.starts_with("byte "));
  }
  CHECK(problem_of("\x80\x02}cos\nsystem\n."s).starts_with("byte 3: "));
}

TEST_CASE("pickle reader: huge counts, missing marks and wrong containers are errors") {
  CHECK(problem_of("\x80\x02X\xff\xff\xff\x7f"
                   "a."s)
          .find("a text of 2147483647 bytes, but the file has 2 more")
        != std::string::npos);
  CHECK(problem_of("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s).find("cut off") != std::string::npos);
  CHECK(problem_of("\x80\x02\x8b\xff\xff\xff\x7f."s) != "");
  CHECK(problem_of("\x80\x02Nr\xff\xff\xff\x7f."s).find("memo slot 2147483647") != std::string::npos);
  CHECK(problem_of("\x80\x02j\x05\x00\x00\x00."s).find("has no value") != std::string::npos);
  CHECK(problem_of("\x80\x02u."s).find("MARK") != std::string::npos);
  CHECK(problem_of("\x80\x02](NNu."s).find("dictionary") != std::string::npos);
  CHECK(problem_of("\x80\x02}(Nu."s).find("value for each key") != std::string::npos);
  CHECK(problem_of("\x80\x02NN."s).find("2 values") != std::string::npos);
  CHECK(problem_of("\x80\x09N."s).find("protocol 9") != std::string::npos);
  CHECK(problem_of("\x80\x02\xff."s).find("0xff") != std::string::npos);
}

TEST_CASE("pickle reader: deep nesting, a list in itself, and lists that grow in turn use little memory") {
  CHECK(problem_of("\x80\x02" + std::string(1'000'000, '(') + std::string(1'000'000, 't') + ".") == "");
  CHECK(problem_of("\x80\x02]q\x00h\x00"
                   "a."s)
        == "");
  std::string both = "\x80\x02]q\x00]q\x01\x86q\x02"s;
  for (int i = 0; i < 200'000; ++i) // quadratic if each moved its list as it is
    both += "h\x00Nah\x01Na00"s;
  CHECK(problem_of(both + ".") == "");
}

TEST_CASE("pickle reader: a dump that repeats its lists far more often than its size allows is an error") {
  std::string bytes = "\x80\x02}(X\x07\x00\x00\x00"
                      "entries]("s;
  std::string sizes = "](" + std::string(60'000, ']') + "e";
  bytes += "}(X\x0b\x00\x00\x00input_sizesq\x00"s + sizes + "q\x01"s
           + "X\x0e\x00\x00\x00profiling_nameq\x02X\x03\x00\x00\x00"s
           + "n:aq\x03X\x11\x00\x00\x00"
             "collective_seq_idq\x04K\x01u"s;
  for (int i = 0; i < 20'000; ++i)
    bytes += "}(h\x00h\x01h\x02h\x03h\x04K\x01u"s;
  auto read = read_evidence("rank_0", bytes + "eu.");
  REQUIRE(!read);
  CHECK(render(read.error()).find("repeated far more often") != std::string::npos);
}

TEST_CASE("pickle reader: a dump that is cut off at any byte is an error") {
  const auto bytes = small_dump();
  REQUIRE(read_evidence("rank_0", bytes));
  for (size_t length = 0; length < bytes.size(); ++length)
    if (auto cut = bytes.substr(0, length); length > 1) {
      auto read = read_evidence("rank_0", cut);
      CHECK_MESSAGE(!read, length);
      if (!read)
        CHECK(render(read.error()).starts_with("rank_0: byte "));
    }
}

TEST_CASE("pickle reader: changed bytes never crash") {
  const auto bytes = small_dump();
  std::minstd_rand random{1};
  size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto changed = bytes;
    for (auto count = 1 + random() % 4; count > 0; --count)
      changed[random() % changed.size()] = static_cast<char>(random());
    auto read = read_evidence("rank_0", changed);
    accepted += read.engaged();
    if (!read)
      CHECK(!render(read.error()).empty());
  }
  CHECK(accepted > 0);
}

TEST_CASE("pickle reader: Python loads our dumps, and its dumps of protocols 0 to 5 are read") {
  temporary_directory dir;
  if (python("print('here')", dir.path().string()) != "here\n") {
    MESSAGE("python3 is not installed");
    return;
  }
  std::ofstream{dir.path() / "ours", std::ios::binary} << small_dump();
  auto printed = python("import pickle\n"
                        "d = pickle.load(open('ours', 'rb'))\n"
                        "print(d['version'], len(d['entries']), d['entries'][0]['profiling_name'],\n"
                        "      d['entries'][0]['process_group'], d['pg_config']['0']['ranks'])\n"
                        "for p in range(6):\n"
                        "  pickle.dump(d, open(f'theirs_{p}', 'wb'), protocol=p)\n",
                        dir.path().string());
  CHECK(printed.starts_with("2.10 6 nccl:"));
  CHECK(printed.find("[0, 1, 2, 3, 4, 5, 6, 7]") != std::string::npos);
  for (int protocol = 0; protocol <= 5; ++protocol) {
    std::ifstream file{dir.path() / fmt::format("theirs_{}", protocol), std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
    auto read = read_evidence("rank_0", bytes);
    REQUIRE_MESSAGE(read, protocol << ": " << render(read.error()));
    CHECK(read->form == evidence_form::flight_recorder_dump);
    CHECK(read->part.ranks.front().calls.size() == 6);
    CHECK(read->rank == 0);
  }
}

} // namespace ringmaster::test
