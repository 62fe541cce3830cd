#include "actors/configuration/configuration.hpp"

#include "messages/errc.hpp"
#include "messages/gpu_sim.pb.h"
#include "tests/support/file_content.hpp"

#include <caf/actor_system.hpp>
#include <caf/deep_to_string.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <stdlib.h>
#include <unistd.h>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

using args = std::vector<std::string>;

/// A file that goes with the test.
class text_file {
public:
  explicit text_file(const std::string& text) {
    char path[] = "/tmp/configuration_test_XXXXXX";
    auto fd = mkstemp(path);
    REQUIRE(fd >= 0);
    close(fd);
    path_ = path;
    std::ofstream{path_} << text;
  }
  ~text_file() { std::filesystem::remove(path_); }

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

/// The sentence that refuses this file and these arguments, "FILE" in place of the file's name; empty: none does.
std::string refusal(const std::string& text, const args& arguments = {}) {
  text_file file{text};
  configuration cfg;
  auto err = cfg.read(arguments, file.path());
  if (!err)
    return "";
  CHECK(code_of(err) == errc::invalid_config);
  auto sentence = render(err);
  auto at = sentence.find(file.path().string());
  return at == std::string::npos ? sentence : sentence.replace(at, file.path().string().size(), "FILE");
}

std::string source_text(const std::string& name) {
  auto text = test::content_of(std::filesystem::path{RINGMASTER_SOURCE_DIR} / name);
  REQUIRE(!text.empty());
  return text;
}

/// "section.key=value" for each line of the file that sets one.
std::set<std::string> settings_of(const std::string& text) {
  std::set<std::string> result;
  std::string section, line;
  for (std::istringstream in{text}; std::getline(in, line);)
    if (line.starts_with("["))
      section = line.substr(1, line.find(']') - 1);
    else if (!line.empty() && !line.starts_with(";"))
      result.insert(section + "." + line);
  return result;
}

} // namespace

TEST_CASE("configuration: without a file and arguments the defaults hold") {
  configuration cfg;
  CHECK(!cfg.read(args{}, std::nullopt));
  CHECK(cfg.values().device.count == 8);
  CHECK(cfg.values().suspicion.late_after == 500ms);
  CHECK(caf::get<caf::timespan>(cfg, "middleman.heartbeat-interval") == 500ms);
  CHECK(caf::get<caf::timespan>(cfg, "middleman.connection-timeout") == 20s);
}

TEST_CASE("configuration: the command line goes before the file, the file before the defaults") {
  text_file file{"[device]\ncount=4\nstreams=3\n[middleman]\nheartbeat-interval=1s\nconnection-timeout=9s\n"};
  configuration cfg;
  CHECK(!cfg.read(args{"--device.count=6", "--middleman.connection-timeout=7s"}, file.path()));
  CHECK(cfg.values().device.count == 6);
  CHECK(cfg.values().device.streams == 3);
  CHECK(cfg.values().device.memory_bytes == 67108864);
  CHECK(caf::get<caf::timespan>(cfg, "middleman.heartbeat-interval") == 1s);
  CHECK(caf::get<caf::timespan>(cfg, "middleman.connection-timeout") == 7s);
}

TEST_CASE("configuration: a flag on the command line goes before the file, with a value or without one") {
  text_file file{"[communicator]\ndeterministic=true\n"};
  configuration off, on;
  CHECK(!off.read(args{"--communicator.deterministic=false"}, file.path()));
  CHECK(!off.values().communicator.deterministic);
  CHECK(!on.read(args{"--communicator.deterministic"}, std::nullopt));
  CHECK(on.values().communicator.deterministic);
  configuration wrong;
  CHECK(render(wrong.read(args{"--communicator.deterministic=maybe"}, std::nullopt))
        == "--communicator.deterministic=maybe: communicator.deterministic is maybe; it must be true or false");
}

TEST_CASE("configuration: an empty text on the command line goes before the file's") {
  text_file file{"[journal]\ndir=\"/var/lib/ringmaster\"\n"};
  configuration none, number;
  CHECK(!none.read(args{"--journal.dir="}, file.path()));
  CHECK(none.values().journal.dir.empty());
  CHECK(render(number.read(args{"--device.count="}, std::nullopt)).find("device.count is empty") != std::string::npos);
}

TEST_CASE("configuration: every key can be set in the file and on the command line") {
  options changed;
  changed.device = {3, 8192, 7, "/tmp"};
  changed.transfers = {6s, 4096};
  changed.route = {"messages", 8192, 9};
  changed.link = {{"10.0.0.7", "all"}, 7081, 3, 4097, true, 2s, 1501ms};
  changed.communicator = {"abort", true, 4s, 31s};
  changed.costs = {1us,  151us, 1501, 5us,  6us,  1506,  21us, 8us,  9us, 3us,
                   1502, 1503,  1504, 4097, 16us, 501ns, 1505, 17us, 18us};
  changed.suspicion = {101ms, 251ms, 501ms, 1001ms, 4, 6};
  changed.supervisor = {6, 11s};
  changed.journal = {"/tmp/log", "always", 102ms, 257, 1000001, "stop"};
  changed.coordinator = {
    "localhost",  7078,           4096,   12s,    "etcd",      "/tmp/store", {"http://a:1", "http://b:2"}, "other/", 3s,
    "/authority", "/certificate", "/key", "user", "/password", 1501ms};
  changed.cluster = {{"1,localhost,7080", "2,localhost,7081"}};
  changed.node = {"n", "localhost", 7079, "localhost:7078", 7s, 59s};
  changed.ranks = {29s, 4min, 4098};
  changed.training = {61s};
  changed.trust = {"/etc/secret", "/etc/host.pem", "/etc/host.key", "/etc/authority.pem", "authenticated", true};
  changed.log = {"debug", "json"};
  std::string text;
  args arguments;
  options defaults;
  auto standard = option_entries(defaults);
  auto entries = option_entries(changed);
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& entry = entries[i];
    CAPTURE(entry.key);
    CHECK(value_text(entry) != value_text(standard[i])); // the test leaves none out
    auto section = std::string{entry.section}, key = std::string{entry.key};
    text += "[" + section + "]\n" + key + "=" + value_text(entry) + "\n";
    arguments.push_back("--" + section + "." + key + "=" + value_text(entry));
  }
  text_file file{text};
  configuration by_file, by_arguments;
  auto err = by_file.read(args{}, file.path());
  CHECK(render(err) == render(caf::error{}));
  err = by_arguments.read(arguments, std::nullopt);
  CHECK(render(err) == render(caf::error{}));
  for (const auto* cfg : {&by_file, &by_arguments}) {
    auto values = cfg->values();
    auto read = option_entries(values);
    for (size_t i = 0; i < entries.size(); ++i) {
      CAPTURE(entries[i].key);
      CHECK(value_text(read[i]) == value_text(entries[i]));
    }
  }
}

TEST_CASE("configuration: a key that does not exist is refused, in the file and on the command line") {
  CHECK(refusal("[device]\ncuont=4\n")
        == "FILE: there is no key device.cuont; section [device] has count, memory-bytes, memory-dir, streams");
  CHECK(refusal("", {"--device.cuont=4"})
        == "--device.cuont=4: there is no key device.cuont; section [device] has count, memory-bytes, memory-dir, "
           "streams");
  CHECK(refusal("[devices]\ncount=4\n").starts_with("FILE: there is no key devices.count; the sections are cluster, "));
  CHECK(refusal("count=4\n").starts_with("FILE: count stands outside of any section; the sections are cluster, "));
  CHECK(refusal("device {\n count = 1\n}\n").starts_with("FILE: device stands outside of any section; "));
  CHECK(refusal("[device.count]\na=1\n").starts_with("FILE: there is no key device.count.a"));
  CHECK(refusal("[middleman]\nheartbeat=1s\n").starts_with("FILE: there is no key middleman.heartbeat; section "));
}

TEST_CASE("configuration: a value of the wrong type is refused, in the file and on the command line") {
  CHECK(refusal("[device]\ncount=\"4\"\n") == "FILE: device.count is \"4\"; it must be an integer from 0 to 1024");
  CHECK(refusal("[device]\ncount=-4\n") == "FILE: device.count is -4; it must be an integer from 0 to 1024");
  CHECK(refusal("[device]\ncount={a=1}\n").ends_with("it must be an integer from 0 to 1024"));
  CHECK(refusal("[device]\ncount=4.5\n").ends_with("it must be an integer from 0 to 1024"));
  CHECK(refusal("[transfers]\ntimeout=5\n") == "FILE: transfers.timeout is 5; it must be a duration from 1ms to 60min");
  CHECK(refusal("[coordinator]\nport=70000\n")
        == "FILE: coordinator.port is 70000; it must be an integer from 0 to 65535");
  CHECK(refusal("[route]\nuse='memory'\n").ends_with("it must be \"auto\", \"memory\", \"link\" or \"messages\""));
  CHECK(refusal("[cluster]\ndevices=\"1,localhost,7080\"\n").ends_with("it must be a list of texts in double quotes"));
  CHECK(refusal("[cluster]\ndevices=[1]\n").ends_with("it must be a list of texts in double quotes"));
  CHECK(refusal("[middleman]\nheartbeat-interval=5\n")
        == "FILE: middleman.heartbeat-interval is 5; it must be a duration such as 500ms");
  CHECK(refusal("[scheduler]\nmax-threads=\"x\"\n")
        == "FILE: scheduler.max-threads is \"x\"; it must be of CAF's type uint64");
  CHECK(refusal("", {"--device.count=x"})
        == "--device.count=x: device.count is x; it must be an integer from 0 to 1024");
  CHECK(refusal("", {"--device.count=-1"})
        == "--device.count=-1: device.count is -1; it must be an integer from 0 to 1024");
  CHECK(refusal("", {"--device.count"})
        == "--device.count: device.count is empty; it must be an integer from 0 to 1024");
  CHECK(refusal("", {"--transfers.timeout=5"}).ends_with("it must be a duration from 1ms to 60min"));
  CHECK(refusal("", {"--coordinator.port=70000"}).ends_with("it must be an integer from 0 to 65535"));
}

TEST_CASE("configuration: sizes and bandwidths are written as in every command") {
  for (auto [text, bytes] : {std::pair{"65536", 65536u}, {"64K", 65536u}, {"64KiB", 65536u}, {"64KB", 64000u}}) {
    CAPTURE(text);
    text_file file{fmt::format("[device]\nmemory-bytes=\"{}\"\n", text)};
    configuration by_file, by_argument;
    CHECK(!by_file.read(args{}, file.path()));
    CHECK(by_file.values().device.memory_bytes == bytes);
    CHECK(!by_argument.read(args{fmt::format("--device.memory-bytes={}", text)}, std::nullopt));
    CHECK(by_argument.values().device.memory_bytes == bytes);
  }
  text_file plain{"[device]\nmemory-bytes=65536\n[costs]\nbandwidth=\"400Gbps\"\n"};
  configuration cfg;
  CHECK(!cfg.read(args{"--costs.local-bandwidth=12.5GiB/s"}, plain.path()));
  CHECK(cfg.values().device.memory_bytes == 65536);
  CHECK(cfg.values().costs.bandwidth == 50'000'000'000);
  CHECK(cfg.values().costs.local_bandwidth == 13'421'772'800);
  const std::string size = "it must be a size from 4K to 1T, such as \"64K\"";
  CHECK(refusal("[device]\nmemory-bytes=\"1.5M\"\n") == "FILE: device.memory-bytes is \"1.5M\"; " + size);
  CHECK(refusal("[device]\nmemory-bytes=-1\n") == "FILE: device.memory-bytes is -1; " + size);
  CHECK(refusal("", {"--device.memory-bytes=2K"}) == "device.memory-bytes is 2048; " + size);
  CHECK(refusal("", {"--costs.bandwidth=fast"}).ends_with("or a number of bytes a second"));
}

TEST_CASE("configuration: --help and --version leave nothing to do") {
  for (auto* option : {"--help", "-h", "--version"}) {
    configuration cfg;
    CHECK(!cfg.read(args{"--device.count=3", option, "--no.such=key"}, std::nullopt));
    CHECK(cfg.cli_helptext_printed);
  }
  configuration cfg;
  auto text = cfg.help_text("my_program", "/etc/ringmaster/caf-application.conf");
  CHECK(text.starts_with("usage: my_program [--section.key=VALUE...]\n"));
  options defaults;
  for (const auto& entry : option_entries(defaults))
    CHECK(text.find(fmt::format("  --{}.{}=", entry.section, entry.key)) != std::string::npos);
  CHECK(text.find("in place of /etc/ringmaster/caf-application.conf\n") != std::string::npos);
}

TEST_CASE("configuration: a value out of range is refused, wherever it comes from") {
  CHECK(refusal("[device]\ncount=1025\n") == "FILE: device.count is 1025; it must be an integer from 0 to 1024");
  CHECK(refusal("", {"--suspicion.late=6"}) == "suspicion.late is 6; it must be at most suspicion.window, which is 5");
  CHECK(refusal("[device]\ncount=1025\n", {"--device.count=4"}) == "");
  CHECK(refusal("[device]\ncount=3\n", {"--device.count=1025"})
        == "device.count is 1025; it must be an integer from 0 to 1024");
}

TEST_CASE("configuration: a key that is there twice and a text that is no INI are refused") {
  CHECK(refusal("[device]\ncount=1\ncount=\"2\"\n") == "FILE: device.count is there twice; once is right");
  CHECK(refusal("[device]\ncount=1\n[device]\ncount=2\n") == "FILE: device.count is there twice; once is right");
  CHECK(refusal("[device]\ncount=four\n").starts_with("FILE, line 2: this is not understood; "));
  CHECK(refusal("# a comment\n").starts_with("FILE, line 1: this is not understood; "));
  CHECK(refusal("[device\n").starts_with("FILE, line 1: this is not understood; "));
  for (auto* before :
       {"  ; an indented comment", " [log]", "[link]\naddresses=[\n\"192.0.2.1\"\n]", "name=\"a\" ; the \"first"}) {
    CAPTURE(before);
    const auto text = fmt::format("[node]\n{}\ncount=four\n", before);
    const auto lines = std::ranges::count(text, '\n');
    CHECK(refusal(text).starts_with(fmt::format("FILE, line {}: this is not understood; ", lines)));
  }
  for (auto* line : {"count", "count=", "memory-dir=\"abc"})
    CHECK(refusal(fmt::format("[device]\n{}\n[log]\n", line)).starts_with("FILE, line 2: this is not understood; "));
}

TEST_CASE("configuration: a section may be there twice") {
  text_file file{"[device]\ncount=1\n[log]\nlevel=\"warn\"\n[device]\nstreams=1\n"};
  configuration cfg;
  CHECK(!cfg.read(args{}, file.path()));
  CHECK(cfg.values().device.count == 1);
  CHECK(cfg.values().device.streams == 1);
  CHECK(cfg.values().log.level == "warn");
}

TEST_CASE("configuration: options may stand behind other arguments, which are left to the tool") {
  configuration cfg;
  CHECK(!cfg.read(args{"demo", "--device.count=3", "--ranks=4", "-v", "--", "--device.count=5"}, std::nullopt));
  CHECK(cfg.values().device.count == 3);
  CHECK(cfg.remainder == args{"demo", "--ranks=4", "-v", "--", "--device.count=5"});
}

TEST_CASE("configuration: the file that the command line names must be there, the default one need not") {
  configuration cfg;
  CHECK(!cfg.read(args{}, "/nowhere/a.conf"));
  auto err = cfg.read(args{"--config-file=/nowhere/b.conf"}, std::nullopt);
  CHECK(code_of(err) == errc::io_error);
  CHECK(render(err) == "the configuration file /nowhere/b.conf cannot be read");
  text_file standard{"[device]\ncount=4\n"}, named{"[device]\nstreams=4\n"};
  configuration other;
  CHECK(!other.read(args{"--config-file=" + named.path().string()}, standard.path()));
  CHECK(other.values().device.count == 8);
  CHECK(other.values().device.streams == 4);
}

TEST_CASE("configuration: check finds what CAF's own reading has passed over") {
  text_file file{"[device]\ncount=\"4\"\n"};
  configuration cfg;
  CHECK(!cfg.parse(args{}, file.path().c_str()));
  CHECK(!cfg.check(std::nullopt));
  CHECK(code_of(cfg.check(file.path())) == errc::invalid_config);
  configuration out_of_range;
  CHECK(!out_of_range.parse(args{"--device.count=1025"}, file.path().c_str()));
  CHECK(code_of(out_of_range.check(std::nullopt)) == errc::invalid_config);
}

TEST_CASE("configuration: the file that we ship lists every key with exactly its default") {
  auto listed = settings_of(source_text("config/caf-application.conf"));
  std::set<std::string> expected{"scheduler.max-throughput=64", "scheduler.policy='stealing'",
                                 "middleman.heartbeat-interval=500ms", "middleman.connection-timeout=20s"};
  options defaults;
  for (const auto& entry : option_entries(defaults))
    expected.insert(std::string{entry.section} + "." + std::string{entry.key} + "=" + value_text(entry));
  CHECK(listed == expected);
  configuration with_file, without;
  auto err = with_file.read(args{}, std::filesystem::path{RINGMASTER_SOURCE_DIR} / "config/caf-application.conf");
  CHECK(render(err) == render(caf::error{}));
  CHECK(!without.read(args{}, std::nullopt));
  CHECK(caf::deep_to_string(with_file.dump_content()) == caf::deep_to_string(without.dump_content()));
}

TEST_CASE("configuration: a system starts with it and renders our errors") {
  configuration cfg;
  REQUIRE(!cfg.read(args{"--scheduler.max-threads=1"}, std::nullopt));
  caf::actor_system system{cfg};
  CHECK(system.has_middleman());
  CHECK(system.render(make_error(errc::timed_out, "rank 3 is late")) == "rank 3 is late");
}

TEST_CASE("configuration: a file may have a byte order mark and lines that end in CRLF, and must be UTF-8") {
  text_file file{"\xef\xbb\xbf[device]\r\ncount=3\r\n; a comment\r\n[coordinator]\r\nhost=\"::1\"\r\n"};
  configuration cfg;
  REQUIRE(!cfg.read(args{}, file.path()));
  CHECK(cfg.values().device.count == 3);
  CHECK(cfg.values().coordinator.host == "::1");
  CHECK(refusal(std::string{"\xff\xfe[\0d\0]\0", 8})
        == "FILE: it is in UTF-16, and must be in UTF-8: `iconv -f UTF-16 -t UTF-8` converts it");
}

TEST_CASE("configuration: a launcher's file and options go before the defaults, and the command line before them") {
  text_file file{"[device]\ncount=3\nstreams=5\n"}, other{"[device]\ncount=6\n"};
  ::setenv("RINGMASTER_CONF", file.path().c_str(), 1);
  ::setenv("RINGMASTER_OPTIONS", "--device.streams=7\n--log.level=warn\n--node.name=a b", 1);
  {
    configuration cfg;
    REQUIRE(!cfg.read(args{"--log.level=off", "word"}, other.path()));
    CHECK(cfg.values().device.count == 3);
    CHECK(cfg.values().device.streams == 7);
    CHECK(cfg.values().log.level == "off");
    CHECK(cfg.values().node.name == "a b");
    CHECK(cfg.remainder == args{"word"});
    configuration named;
    REQUIRE(!named.read(args{"--config-file=" + other.path().string()}, std::nullopt));
    CHECK(named.values().device.count == 6);
  }
  ::unsetenv("RINGMASTER_CONF");
  ::unsetenv("RINGMASTER_OPTIONS");
}

TEST_CASE("configuration: messages of peers that cannot be read have a line a second in the log, and none elsewhere") {
  configuration cfg;
  std::ostringstream out;
  auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("configuration_test",
                                                              std::make_shared<spdlog::sinks::ostream_sink_mt>(out)));
  gpu_sim::CommInitRequest request;
  for (int i = 0; i < 1000; ++i)
    CHECK_FALSE(request.ParseFromString("\xca\x06\x01\xff")); // a name, field 105, that is not UTF-8
  spdlog::set_default_logger(before);
  const auto text = out.str();
  CHECK(std::ranges::count(text, '\n') <= 2);
  CHECK((text.empty() || text.find("a message cannot be read") != text.npos)); // of a second that had its line
}
