#include "gateway/dialects/listener_file.hpp"
#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::gateway;

namespace {

/// The error of a file with one listener and these lines.
std::string complaint(const std::string& lines) {
  auto parsed = parse_listeners("[a]\naddress = 127.0.0.1:1\n" + lines);
  return parsed ? "" : render(parsed.error());
}

dialect form_of(const std::string& lines) {
  auto parsed = parse_listeners("[a]\naddress = 127.0.0.1:1\n" + lines);
  REQUIRE_MESSAGE(parsed, render(parsed.error()));
  return parsed->front().form;
}

} // namespace

TEST_CASE("dialect: the default has the numbers of the lab") {
  const dialect lab;
  CHECK_FALSE(lab.check());
  CHECK(lab.number_of(gpu_sim::IN_PROGRESS) == 0);
  CHECK(lab.number_of(gpu_sim::SUCCESS) == 1);
  CHECK(lab.number_of(gpu_sim::FAILED) == 2);
  CHECK(lab.first_status_number() == 1);
  CHECK(*lab.reduce_op(0) == gpu_sim::SUM);
  CHECK(*lab.reduce_op(3) == gpu_sim::MAX);
  CHECK(*lab.elements(7) == 7);
  CHECK(lab.bytes_of(7) == 56);
}

TEST_CASE("dialect: names in another order have other numbers") {
  const auto form = form_of("status = READY, IN_PROGRESS, SUCCESS, FAILED\nreduce-op = NIL, SUM, PROD, MIN, MAX\n"
                            "first-status = READY\n");
  CHECK(form.number_of(gpu_sim::IN_PROGRESS) == 1);
  CHECK(form.number_of(gpu_sim::FAILED) == 3);
  CHECK(form.first_status_number() == 0);
  CHECK(*form.reduce_op(1) == gpu_sim::SUM);
  CHECK(code_of(form.reduce_op(0).error()) == errc::invalid_argument);
  CHECK(render(form.reduce_op(7).error()) == "the reduction 7 is not 1 (SUM), 2 (PROD), 3 (MIN) or 4 (MAX)");
  CHECK(code_of(form.reduce_op(-1).error()) == errc::invalid_argument);
}

TEST_CASE("dialect: a count in bytes is one of whole elements") {
  const auto form = form_of("count = bytes\ndatatype = float32\n");
  CHECK(*form.elements(40) == 10);
  CHECK(render(form.elements(42).error())
        == "the count is in bytes, and 42 is no multiple of the 4 bytes of an element");
}

TEST_CASE("dialect: the reduction of a BeginSend is ignored unless the file has it applied") {
  const dialect lab;
  CHECK_FALSE(*lab.send_reduction(1));
  CHECK_FALSE(*lab.send_reduction(77));
  const auto own = form_of("send-op = applied\n");
  CHECK((*own.send_reduction(0))->op() == gpu_sim::SUM); // the number of an absent field
  CHECK((*own.send_reduction(1))->op() == gpu_sim::PROD);
  CHECK((*own.send_reduction(1))->datatype() == proto::FLOAT64);
  CHECK(code_of(own.send_reduction(7).error()) == errc::invalid_argument);
  const auto other = form_of("send-op = applied\nreduce-op = NIL, SUM, PROD, MIN, MAX\ndatatype = float32\n");
  CHECK_FALSE(*other.send_reduction(0));
  CHECK((*other.send_reduction(4))->op() == gpu_sim::MAX);
  CHECK((*other.send_reduction(4))->datatype() == proto::FLOAT32);
  CHECK_FALSE(*form_of("send-op = ignored\n").send_reduction(1));
}

TEST_CASE("listener file: sections, comments and every key") {
  auto parsed = parse_listeners("; two of them\n[lab]\naddress = 127.0.0.1:50051 # the lab's own port\n\n"
                                "[other]\naddress=[::1]:5000\ndevices = 127.0.0.1:5003, 127.0.0.1:5004\n"
                                "device-ids = 1\nwindow = 0x1000 1MiB\non-loss = abort\npeer = device\nchunk = header\n"
                                "on-shortage = refuse\nidle-limit = 30s\ncall-limit = 5s\nmessage-max = 64MiB\n"
                                "calls-max = 10\r\nsend-op = applied\n");
  REQUIRE(parsed);
  REQUIRE(parsed->size() == 2);
  CHECK(text_of((*parsed)[0].address) == "127.0.0.1:50051");
  auto& other = (*parsed)[1];
  CHECK(other.name == "other");
  CHECK(text_of(other.address) == "[::1]:5000");
  CHECK(other.devices.size() == 2);
  CHECK(other.form.first_device_id == 1);
  CHECK(other.form.addresses->base == 0x1000);
  CHECK(other.form.addresses->bytes == 1 << 20);
  CHECK(other.form.on_loss == dialect::loss_policy::abort);
  CHECK(other.form.peer == dialect::peer_name::device);
  CHECK(other.form.chunk == dialect::chunk_name::header);
  CHECK(other.form.send_op == dialect::send_op_use::applied);
  CHECK(other.form.on_shortage == dialect::shortage::refuse);
  CHECK(other.form.idle_limit == std::chrono::seconds{30});
  CHECK(other.form.call_limit == std::chrono::seconds{5});
  CHECK(other.form.message_bytes_max == 64 << 20);
  CHECK(other.form.calls_max == 10);
}

TEST_CASE("listener file: a mistake is reported with its line") {
  CHECK(complaint("cuont = bytes\n") == "line 3: there is no key \"cuont\"; did you mean \"count\"?");
  CHECK(complaint("count = words\n") == "line 3: count: \"words\" is not elements or bytes");
  CHECK(complaint("count = bytes\ncount = bytes\n") == "line 4: the listener [a] has the key \"count\" twice");
  CHECK(complaint("send-op = maybe\n") == "line 3: send-op: \"maybe\" is not ignored or applied");
  CHECK(complaint("count\n") == "line 3: \"count\" is neither [NAME] nor KEY = VALUE");
  CHECK(complaint("count =\n") == "line 3: \"count\" has no value");
  CHECK(complaint("window = 0x1000\n")
        == "line 3: window: \"0x1000\" is no window, such as \"0x1000 1M\": the first address, and the size");
  CHECK(complaint("idle-limit = 0\n") == "line 3: idle-limit: \"0\" is no time of more than 0, such as 30s");
  CHECK(complaint("[a]\n") == "line 3: there are two listeners [a]");
  CHECK(complaint("[b\n") == "line 3: \"[b\" is no section: [NAME]");
  CHECK(complaint("status = SUCCESS, FAILED\n") == "the listener [a]: status: IN_PROGRESS is missing");
  CHECK(complaint("status = IN_PROGRESS, SUCCESS, FAILED, DONE\n")
        == "the listener [a]: status: \"DONE\" is not READY, IN_PROGRESS, SUCCESS or FAILED");
  CHECK(complaint("reduce-op = SUM, SUM\n")
        == "the listener [a]: reduce-op: a name stands there twice, and each has one number");
  CHECK(complaint("first-status = READY\n")
        == "the listener [a]: first-status: \"READY\" is not one of the statuses: IN_PROGRESS, SUCCESS, FAILED");
  CHECK(complaint("address = here\n") != "");
  CHECK(complaint("datatype = float7\n") != "");
  CHECK(complaint("message-max = 2GiB\n") != "");
}

TEST_CASE("listener file: what is missing is reported") {
  auto why = [](const char* text) { return render(parse_listeners(text).error()); };
  CHECK(why("") == "there is no listener: a section [NAME] with address = HOST:PORT");
  CHECK(why("count = bytes\n") == "line 1: \"count\" stands before the first section: [NAME]");
  CHECK(why("[a]\ncount = bytes\n[b]\naddress = 127.0.0.1:1\n")
        == "line 3: the listener [a] has no address: address = 127.0.0.1:50051");
  CHECK(why("[a]\n") == "the listener [a] has no address: address = 127.0.0.1:50051");
}

TEST_CASE("listener file: an address stands for the lab's form") {
  auto lab = listeners_of("127.0.0.1:50051");
  REQUIRE(lab);
  CHECK(lab->size() == 1);
  CHECK(lab->front().address.port == 50051);
  CHECK(code_of(listeners_of("/no/such/file").error()) == errc::io_error);
}
