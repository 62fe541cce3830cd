// Systems that people write.
#include "messages/errc.hpp"
#include "planner/estimates/exchange_times.hpp"
#include "planner/systems/gpu_system.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

gpu_system h100_with(const std::string& members) {
  auto x = parse_system("{\"like\": \"h100-80g\", " + members + "}");
  REQUIRE_MESSAGE(x.engaged(), render(x.error()));
  return *x;
}

std::string refusal_of_h100_with(const std::string& members) {
  auto x = parse_system("{\"like\": \"h100-80g\", " + members + "}");
  REQUIRE(!x.engaged());
  return render(x.error());
}

} // namespace

TEST_CASE("system file: a system from a file has another's constants where it says none") {
  auto x = parse_system(R"({"name": "mine", "like": "h100-80g", "memory_bytes": 94e9})");
  REQUIRE_MESSAGE(x.engaged(), render(x.error()));
  CHECK(x->name == "mine");
  CHECK(x->memory_bytes == 94e9);
  CHECK(x->peak_flops == 989e12);
  auto refusal = [](const char* text) { return render(parse_system(text).error()); };
  CHECK(refusal("[]") == "a system is an object");
  CHECK(refusal("{}") == "\"like\" is missing: the known system whose other constants are taken");
  CHECK(refusal(R"({"like": "a100"})").ends_with("\"a100\" is more than one system: say a100-80g or a100-40g"));
  CHECK(refusal(R"({"like": "v100"})").find("there is no system \"v100\"; systems are: a100-80g") != std::string::npos);
  CHECK(refusal(R"({"like": "a100-80g", "speed": 1})") == "a system has no \"speed\"");
  CHECK(refusal(R"({"like": "a100-80g", "peak_flop": 1})")
        == "a system has no \"peak_flop\"; did you mean \"peak_flops\"?");
  CHECK(refusal(R"({"like": "a100-80g", "watts": "700"})") == "\"watts\": \"700\" is no power such as 700W or 1.4kW");
  CHECK(refusal(R"({"like": "a100-80g", "watts": true})")
        == "\"watts\" must be a number of watts, or a text such as \"700W\"");
  CHECK(refusal(R"({"like": "a100-80g", "hop_latency_s": 30})").find("hop_latency_s is 30, which nothing has")
        != std::string::npos);
  CHECK(refusal(R"({"like": "a100-80g", "name": "red\u001b[31m"})")
        == "\"name\" must be in one line, without control characters");
  CHECK(refusal(R"({"like": "a100-80g", "peak_flops": 0})") == "peak_flops is 0; it must be more than 0");
  CHECK(refusal(R"({"like": "a100-80g", "matrix_efficiency": 2})").find("it is a part, at most 1")
        != std::string::npos);
  CHECK(refusal(R"({"like": "a100-80g")").find("line 1") != std::string::npos);
  CHECK(render(system_of("nowhere").error()).find("there is no system and no file \"nowhere\"") != std::string::npos);
}

TEST_CASE("system file: a known system may be named by its beginning, where only one begins so") {
  CHECK(system_of("h100")->name == "h100-80g");
  CHECK(parse_system(R"({"like": "h100"})")->constants_of == "h100-80g");
  CHECK(system_of("GB300")->name == "gb300-nvl72");
  CHECK(system_of("B200")->name == "b200");
  CHECK(render(system_of("b").error()).ends_with("\"b\" is more than one system: say b200 or b300"));
  CHECK(render(system_of("gb").error()).ends_with("\"gb\" is more than one system: say gb200-nvl72 or gb300-nvl72"));
  CHECK(render(system_of("v100").error()).find("systems are: a100-80g, a100-40g") != std::string::npos);
}

TEST_CASE("system file: a system's rates, bandwidths, memory and seconds may have units") {
  auto x = parse_system(R"({"like": "h100-80g", "peak_flops": "989 TFLOP/s", "fp8_flops": "1.979PFLOPS",
    "memory_bytes": "96GB", "reserved_bytes": "4GiB", "memory_bandwidth": "2.7TB/s", "network_bandwidth": "400Gbps",
    "hop_bandwidth": "50 GB/s", "hop_latency_s": "12.5us"})");
  REQUIRE_MESSAGE(x.engaged(), render(x.error()));
  CHECK(x->peak_flops == 989e12);
  CHECK(x->fp8_flops == doctest::Approx(1979e12));
  CHECK(x->memory_bytes == 96e9);
  CHECK(x->reserved_bytes == 4294967296.0);
  CHECK(x->memory_bandwidth == doctest::Approx(2.7e12));
  CHECK(x->network_bandwidth == 50e9);
  CHECK(x->hop_bandwidth == 50e9);
  CHECK(x->hop_latency_s == doctest::Approx(12.5e-6));
  auto refusal = [](const std::string& member) {
    return render(parse_system("{\"like\": \"a100-80g\", " + member + "}").error());
  };
  CHECK(refusal(R"("peak_flops": "989 TB/s")")
        == "\"peak_flops\": \"989 TB/s\" is not a rate such as 989TFLOP/s, 989 TFLOPS or "
           "2.25PFLOP/s");
  CHECK(refusal(R"("peak_flops": "-1TFLOP/s")").find("is not a rate") != std::string::npos);
  CHECK(refusal(R"("peak_flops": "TFLOP/s")").find("is not a rate") != std::string::npos);
  CHECK(refusal(R"("hop_bandwidth": "400")").find("\"hop_bandwidth\": \"400\" is not a bandwidth such as 50GB/s")
        != std::string::npos);
  CHECK(refusal(R"("memory_bytes": "80 apples")").find("is not a whole number of bytes") != std::string::npos);
  CHECK(refusal(R"("memory_bytes": "0GB")").find("memory_bytes is 0; it must be more than 0") != std::string::npos);
  CHECK(refusal(R"("kernel_s": "1")").find("\"kernel_s\": \"1\" is not a duration such as 5us") != std::string::npos);
  CHECK(refusal(R"("network_bandwidth": true)")
        == "\"network_bandwidth\" must be a number of bytes a second, or a text such as \"50GB/s\" "
           "or \"400Gbps\"");
  CHECK(refusal(R"("matrix_efficiency": "80%")").ends_with("\"matrix_efficiency\" must be a number"));
}

TEST_CASE("system file: what no hardware has is refused") {
  CHECK(refusal_of_h100_with(R"("peak_flops": 1e30)")
        == "peak_flops is 1e+30, which nothing has; it must be from 1000000 to 3e+17");
  for (auto* member :
       {R"("peak_flops": 1)", R"("memory_bytes": "5e6GB")", R"("memory_bandwidth": 1e20)", R"("hop_latency_s": 1e9)",
        R"("network_per_device": 1e-9)", R"("matrix_efficiency": 1e-300)", R"("logit_bytes": 1e200)"}) {
    CAPTURE(member);
    const auto sentence = refusal_of_h100_with(member);
    CHECK((sentence.find("which nothing has; it must be from") != std::string::npos
           || sentence.find("is not a whole number of bytes") != std::string::npos));
  }
}

TEST_CASE("system file: pods have whole domains and a bandwidth to the others") {
  const auto x = h100_with(R"("devices_per_pod": 64, "pod_bandwidth": "100GB/s")");
  CHECK(x.devices_per_pod == 64);
  CHECK(x.pod_bandwidth == 100e9);
  CHECK(refusal_of_h100_with(R"("devices_per_pod": 64)")
        == "pods are described by \"devices_per_pod\" and \"pod_bandwidth\", of a domain to other pods: "
           "say both");
  CHECK(refusal_of_h100_with(R"("pod_bandwidth": 1e11)").find("say both") != std::string::npos);
  CHECK(refusal_of_h100_with(R"("devices_per_pod": 3, "pod_bandwidth": 1e11)")
        == "devices_per_pod is 3; a pod has whole domains, of 8 devices");
  CHECK(refusal_of_h100_with(R"("devices_per_tray": 3)")
        == "devices_per_tray is 3; a domain of 8 devices has whole trays, or none (0)");
  CHECK(refusal_of_h100_with(R"("devices_per_pod": 1.5, "pod_bandwidth": 1e11)").find("must be a whole number")
        != std::string::npos);
}

TEST_CASE("system file: of what data sheets say the same part is reached as of the known system's") {
  const auto known = *system_of("h100-80g");
  for (auto* same : {R"("memory_peak_bandwidth": "3.35TB/s")", R"("link_per_device": "450GB/s")",
                     R"("network_per_device": "400Gbps")", R"("devices_per_host": 8)"}) {
    const auto x = h100_with(same);
    CAPTURE(same);
    CHECK(x.memory_bandwidth == doctest::Approx(known.memory_bandwidth));
    CHECK(x.host_bandwidth == doctest::Approx(known.host_bandwidth));
    CHECK(x.network_bandwidth == doctest::Approx(known.network_bandwidth));
    CHECK(x.hop_bandwidth == doctest::Approx(known.hop_bandwidth));
  }
  const auto x = h100_with(R"("memory_peak_bandwidth": "6.7TB/s", "link_per_device": "900GB/s",
    "network_per_device": "800Gbps", "devices_per_host": 4)");
  CHECK(x.memory_bandwidth == doctest::Approx(2 * known.memory_bandwidth));
  CHECK(x.host_bandwidth == doctest::Approx(2 * known.host_bandwidth));
  CHECK(x.hop_bandwidth == doctest::Approx(2 * known.hop_bandwidth));
  CHECK(x.network_bandwidth == doctest::Approx(known.network_bandwidth)); // half as many, twice as fast
  const auto halved = h100_with(R"("devices_per_host": 4)");
  CHECK(halved.network_bandwidth / 4 == doctest::Approx(known.network_bandwidth / 8));
  CHECK(h100_with(R"("devices_per_host": 4, "network_bandwidth": "200GB/s")").network_bandwidth == 200e9);
  CHECK(refusal_of_h100_with(R"("memory_bandwidth": 2e12, "memory_peak_bandwidth": 3e12)")
          .find("\"memory_peak_bandwidth\", a data sheet's, and \"memory_bandwidth\", what is reached of it, are two "
                "ways to say the same: say one")
        != std::string::npos);
  CHECK(render(parse_system(R"({"like": "cpu-2core", "link_per_device": 1e9})").error())
          .find("cpu-2core has no such link, so \"link_per_device\" cannot be scaled: say \"host_bandwidth\"")
        != std::string::npos);
}

TEST_CASE("system file: no more is reached than the data sheet has, sums by switches at most twice that") {
  CHECK(
    refusal_of_h100_with(R"("memory_bandwidth": "5TB/s")")
      .find("memory_bandwidth is 5e+12 bytes a second; as h100-80g has memory_peak_bandwidth at most 3.35e+12 can be "
            "reached: say \"memory_peak_bandwidth\" if yours is faster")
    != std::string::npos);
  CHECK(refusal_of_h100_with(R"("hop_bandwidth": "51GB/s")").find("network_per_device") != std::string::npos);
  CHECK(refusal_of_h100_with(R"("host_bandwidth": "1TB/s")").find("link_per_device") != std::string::npos);
  CHECK(h100_with(R"("host_bandwidth": "480GB/s")").host_bandwidth == 480e9);
}

TEST_CASE("system file: a known system reaches no more than its data sheet says") {
  for (auto& x : known_systems()) {
    CAPTURE(x.name);
    CHECK(x.memory_bandwidth <= x.memory_peak_bandwidth);
    CHECK(x.hop_bandwidth <= x.network_per_device);
    CHECK(x.network_bandwidth <= x.network_per_device * x.devices_per_host);
    if (x.link_per_device > 0)
      CHECK(x.host_bandwidth <= x.link_per_device);
  }
}

TEST_CASE("exchange times: what leaves a pod has a device's part of its domain's bandwidth to the others") {
  const auto plain = h100_with(R"("watts": 700)"),
             slow = h100_with(R"("devices_per_pod": 64, "pod_bandwidth": "0.8GB/s")"),
             fast = h100_with(R"("devices_per_pod": 64, "pod_bandwidth": "1TB/s")");
  training_setting how;
  how.set_degrees(1, 16, 4);
  how.cp = 4; // 256 devices
  const auto model = [] {
    language_model m;
    m.hidden = 4096;
    m.sequence = 8192;
    return m;
  }();
  const auto bytes = 2.0 * 8192 / 4 * 4096;
  CHECK(hop_time(model, slow, how) == doctest::Approx(slow.hop_latency_s + bytes / 0.1e9));
  CHECK(hop_time(model, fast, how) == hop_time(model, plain, how)); // a card is no faster
  how.dp = 4;                                                       // a pod
  CHECK(hop_time(model, slow, how) == hop_time(model, plain, how));
  CHECK(context_exchange_time(1e8, 3, 128, slow) == doctest::Approx(3 * (slow.hop_latency_s + 1)));
  CHECK(context_exchange_time(1e8, 3, 128, fast) == context_exchange_time(1e8, 3, 128, plain));
  CHECK(context_exchange_time(1e8, 3, 64, slow) == context_exchange_time(1e8, 3, 64, plain));
}
