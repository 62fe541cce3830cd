// Over real sockets, on loopback.
#include "actors/links/link_hub.hpp"

#include "actors/links/socket_greeting.hpp"
#include "runtime/links/link_frames.hpp"
#include "runtime/memory/device_memory.hpp"
#include "runtime/reduction/reducer.hpp"
#include "tests/actors/links/link_proxy.hpp"
#include "tests/actors/links/linked_processes.hpp"
#include "tests/support/no_descriptors.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <poll.h>
#include <ranges>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

TEST_CASE("links: where the process has no descriptors left a hub cannot start, and says so") {
  caf::error problem;
  {
    const no_descriptors none;
    auto hub = link_hub::start(on_loopback());
    REQUIRE(!hub);
    problem = hub.error();
  }
  CHECK(contains(render(problem), "Too many open files"));
}

TEST_CASE("links: blocks of any size come into their place, with checksums and without") {
  linked_owner owner{4 * mib};
  owner.fill(4 * mib);
  for (bool checksums : {false, true}) {
    auto options = on_loopback();
    options.checksums = checksums;
    linked_reader reader{options};
    uint32_t index = 0;
    for (uint64_t bytes : {uint64_t{1}, uint64_t{100}, uint64_t{link_frame::bytes_max}, 3 * mib + 5}) {
      std::vector<std::byte> out(bytes + 2);
      auto exposed = owner.expose(++index, 7, bytes);
      CHECK(reader.fetch(owner.hub->place(), index, {out.data() + 1}, bytes) == link_fetch::outcome::done);
      CHECK(has_pattern(std::span{out}.subspan(1, bytes), 7));
      CHECK(out.front() == std::byte{0});
      CHECK(out.back() == std::byte{0});
      CHECK(exposed->frames() > 0);
    }
    CHECK(reader.hub->counts().connections_made == 1);
  }
}

TEST_CASE("links: a block is reduced while it comes, whatever its pieces") {
  constexpr uint64_t count = 300'001;
  linked_owner owner{4 * mib};
  std::vector<float> ours(count), sum(count);
  auto theirs = reinterpret_cast<float*>(owner.memory->at(base, 4 * count)->data());
  for (uint64_t i = 0; i < count; ++i) {
    theirs[i] = static_cast<float>(i % 1000);
    ours[i] = static_cast<float>(i % 77);
  }
  auto combine = *reducer::of(proto::FLOAT32, gpu_sim::SUM);
  auto exposed = owner.expose(1, 0, 4 * count);
  for (bool checksums : {false, true})
    for (uint32_t connections : {1, 3}) {
      auto options = on_loopback();
      options.checksums = checksums;
      options.connections = connections;
      linked_reader reader{options};
      std::fill(sum.begin(), sum.end(), -1.0f);
      block_sink sink{reinterpret_cast<std::byte*>(sum.data()), reinterpret_cast<std::byte*>(ours.data()), &combine};
      CHECK(reader.fetch(owner.hub->place(), 1, sink, 4 * count) == link_fetch::outcome::done);
      bool right = true;
      for (uint64_t i = 0; i < count; ++i)
        right = right && sum[i] == static_cast<float>(i % 1000 + i % 77);
      CHECK(right);
    }
}

TEST_CASE("links: many blocks at once, over several addresses and connections") {
  auto options = on_loopback();
  options.addresses = {"127.0.0.1", "127.0.0.2"};
  options.connections = 2;
  linked_owner owner{8 * mib, options};
  owner.fill(8 * mib);
  linked_reader reader{options};
  std::vector<std::byte> out(8 * mib), small(1000 * 64);
  std::vector<std::shared_ptr<link_exposure>> exposed{owner.expose(0, 0, 8 * mib)};
  reader.begin(owner.hub->place(), 0, {out.data()}, 8 * mib);
  for (uint32_t i = 0; i < 1000; ++i) {
    exposed.push_back(owner.expose(i + 1, 64 * i, 64));
    reader.begin(owner.hub->place(), i + 1, {small.data() + 64 * i}, 64);
  }
  REQUIRE(reader.await_ends(1001));
  CHECK(has_pattern(out));
  CHECK(has_pattern(small));
  CHECK(reader.hub->counts().connections_made == 4);
}

TEST_CASE("links: a block that is not on offer, or no longer, is not sent") {
  linked_owner owner{1 * mib};
  linked_reader reader;
  std::vector<std::byte> out(64);
  CHECK(reader.fetch(owner.hub->place(), 1, {out.data()}, 64) == link_fetch::outcome::gone);
  auto exposed = owner.expose(2, 0, 64);
  CHECK(reader.fetch(owner.hub->place(), 2, {out.data()}, 64) == link_fetch::outcome::done);
  exposed.reset();
  CHECK(reader.fetch(owner.hub->place(), 2, {out.data()}, 64) == link_fetch::outcome::gone);
}

TEST_CASE("links: what is offered again while the old offer goes is there") {
  linked_owner owner{1 * mib};
  linked_reader reader;
  std::vector<std::byte> out(64);
  auto exposed = owner.expose(1, 0, 64);
  exposed = owner.expose(1, 64, 64); // the new one comes before the old one goes
  CHECK(reader.fetch(owner.hub->place(), 1, {out.data()}, 64) == link_fetch::outcome::done);
}

TEST_CASE("links: a fetch reaches the process that it names or none, and an error names both ends") {
  linked_owner owner{1 * mib};
  linked_reader reader;
  std::vector<std::byte> out(64);
  auto exposed = owner.expose(1, 0, 64);
  auto other = owner.hub->place();
  ++other.process;
  CHECK(reader.fetch(other, 1, {out.data()}, 64) == link_fetch::outcome::unreachable);
  CHECK(contains(render(reader.last->why()), "the process that listens there is another one, or of another version"));
  CHECK(owner.hub->counts().strangers_refused == 1);

  auto nobody = own_end_text(listen_at({"127.0.0.1", 0})->descriptor); // closed again
  CHECK(reader.fetch({5, {nobody}, {}}, 1, {out.data()}, 64) == link_fetch::outcome::unreachable);
  auto why = render(reader.last->why());
  CAPTURE(why);
  CHECK(contains(why, "there is no bulk connection from 127.0.0.1:"));
  CHECK(contains(why, fmt::format(" to {}: Connection refused", nobody)));
  CHECK(reader.last->missing() == std::vector<byte_range>{{0, 64}});
  // Of what no socket is made for, too.
  uint64_t process = 8;
  for (auto& [where, reason] : {std::pair<std::string, std::string>{"no-such-host:1", "is no numeric address"},
                                {"255.255.255.255:1", "no way leads there from this host"}}) {
    CHECK(reader.fetch({process++, {where}, {}}, 1, {out.data()}, 64) == link_fetch::outcome::unreachable);
    auto said = render(reader.last->why());
    CAPTURE(said);
    CHECK(contains(said, fmt::format("there is no bulk connection from pid {} ", ::getpid())));
    CHECK(contains(said, fmt::format("(link.addresses: 127.0.0.1) to {}: ", where)));
    CHECK(contains(said, reason));
  }
  CHECK(reader.fetch({7, {}, {}}, 1, {out.data()}, 64) == link_fetch::outcome::unreachable);
}

TEST_CASE("links: a process that cannot be reached at one address is reached at the other") {
  linked_owner owner{4 * mib};
  owner.fill(4 * mib);
  auto exposed = owner.expose(1, 0, 4 * mib);
  auto nobody = own_end_text(listen_at({"127.0.0.1", 0})->descriptor);
  linked_reader reader;
  std::vector<std::byte> out(4 * mib);
  auto place = owner.hub->place();
  place.endpoints.insert(place.endpoints.begin(), nobody);
  CHECK(reader.fetch(place, 1, {out.data()}, out.size()) == link_fetch::outcome::done);
  CHECK(has_pattern(out));
  place.endpoints.front() = "255.255.255.255:1"; // the system refuses it at once
  linked_reader another;
  CHECK(another.fetch(place, 1, {out.data()}, out.size()) == link_fetch::outcome::done);
  place.endpoints = {"255.255.255.255:1", "255.255.255.255:2"};
  linked_reader third;
  CHECK(third.fetch(place, 1, {out.data()}, out.size()) == link_fetch::outcome::unreachable);
  uint64_t missing = 0;
  for (auto [begin, end] : third.last->missing())
    missing += end - begin;
  CHECK(missing == out.size());
}

TEST_CASE("links: a process with another secret, or none, fetches nothing, and one with the same does") {
  const auto with = [](const credentials_ptr& trust) {
    auto result = on_loopback();
    result.trust = trust;
    return result;
  };
  const auto some = [] { return credentials::of({role::member, {}, shared_secret::random()}, "a test's"); };
  const auto ours = some();
  linked_owner owner{1 * mib, with(ours)};
  owner.fill(64);
  auto exposed = owner.expose(1, 0, 64);
  std::vector<std::byte> out(64);
  uint64_t refused = 0;
  for (const auto& [theirs, says] : {std::pair{credentials_ptr{some()}, "has another secret than this process"},
                                     {no_credentials(), "requires the secret of its cluster"}}) {
    linked_reader reader{with(theirs)};
    CHECK(reader.fetch(owner.hub->place(), 1, {out.data()}, 64) == link_fetch::outcome::unreachable);
    CHECK(contains(render(reader.last->why()), says));
    CHECK(await_true([&] { return owner.hub->counts().strangers_refused == refused + 1; }));
    ++refused;
  }
  linked_reader reader{with(ours)};
  CHECK(reader.fetch(owner.hub->place(), 1, {out.data()}, 64) == link_fetch::outcome::done);
  CHECK(has_pattern(out));
}

TEST_CASE("links: strangers and malformed requests are turned away, and hold up no one") {
  linked_owner owner{1 * mib};
  owner.fill(1 * mib);
  auto exposed = owner.expose(1, 0, 64);
  auto there = *numeric_address(*parse_endpoint(owner.hub->place().endpoints.front()));
  auto turned_away = [&](std::vector<std::byte> words, bool admitted = true) {
    open_socket stranger{::socket(AF_INET, SOCK_STREAM, 0)};
    REQUIRE(::connect(stranger.descriptor, there.get(), there.size) == 0);
    if (admitted)
      have_admitted(stranger);
    REQUIRE(::send(stranger.descriptor, words.data(), words.size(), MSG_NOSIGNAL) > 0);
    std::array<char, 4096> answer;
    ssize_t got = 0, all = 0;
    for (pollfd waits{stranger.descriptor, POLLIN, 0}; ::poll(&waits, 1, 20'000) > 0; all += got)
      if (got = ::recv(stranger.descriptor, answer.data(), answer.size(), 0); got <= 0)
        return all <= static_cast<ssize_t>(admitted ? link_hello::wire_bytes : challenge_bytes + verdict_bytes);
    return false;
  };
  auto words = [](auto... xs) {
    std::vector<std::byte> result;
    (result.insert(result.end(), xs.begin(), xs.end()), ...);
    return result;
  };
  auto hello = encode(link_hello{owner.hub->place().process});
  const auto http = words(std::string_view{"GET / HTTP/1.1\r\nHost: here\r\n\r\n"}
                          | std::views::transform([](char x) { return static_cast<std::byte>(x); }));
  CHECK(turned_away(http));
  CHECK(turned_away(http, false));
  CHECK(turned_away(words(encode(link_hello{1}))));
  CHECK(turned_away(words(hello, encode(link_request{.id = 1, .key = {}, .device = {}, .bytes = 0}))));
  link_request beyond{.id = 1, .key = key_number(1), .device = {3}, .offset = 60, .bytes = 5};
  CHECK(turned_away(words(hello, encode(beyond))));
  CHECK(owner.hub->counts().strangers_refused == 5);
  linked_reader reader;
  std::vector<std::byte> out(64);
  CHECK(reader.fetch(owner.hub->place(), 1, {out.data()}, 64) == link_fetch::outcome::done);
}

TEST_CASE("links: a connection that breaks is made again, and the block goes on where it was") {
  constexpr uint64_t bytes = 2 * mib;
  linked_owner owner{bytes};
  owner.fill(bytes);
  auto exposed = owner.expose(1, 0, bytes);
  for (bool checksums : {false, true}) {
    link_proxy proxy{owner.hub->place().endpoints.front(),
                     {{.cut_after = 24 + 32 + 1001}, {.cut_after = mib}, {.cut_after = greeted_bytes}}};
    auto options = on_loopback();
    options.checksums = checksums;
    linked_reader reader{options};
    auto sent_before = owner.hub->counts().bytes_sent.load();
    std::vector<std::byte> out(bytes);
    CHECK(reader.fetch(by_way_of(proxy, owner.hub->place()), 1, {out.data()}, bytes) == link_fetch::outcome::done);
    CHECK(has_pattern(out));
    CHECK(proxy.connections() == 4);
    CHECK(reader.hub->counts().connections_lost == 3);
    CHECK(owner.hub->counts().bytes_sent - sent_before < 4 * bytes); // not from the start each time
  }
}

TEST_CASE("links: a reduction is not done twice where its connection breaks in an element") {
  constexpr uint64_t count = 100'000;
  linked_owner owner{4 * mib};
  auto theirs = reinterpret_cast<double*>(owner.memory->at(base, 8 * count)->data());
  for (uint64_t i = 0; i < count; ++i)
    theirs[i] = static_cast<double>(i);
  auto exposed = owner.expose(1, 0, 8 * count);
  for (bool checksums : {false, true}) {
    link_proxy proxy{owner.hub->place().endpoints.front(),
                     {{.cut_after = greeted_bytes + 32 + 4003}, {.cut_after = 300'001}}};
    auto options = on_loopback();
    options.checksums = checksums;
    linked_reader reader{options};
    std::vector<double> sum(count, 1);
    auto combine = *reducer::of(proto::FLOAT64, gpu_sim::SUM);
    auto* bytes = reinterpret_cast<std::byte*>(sum.data());
    CHECK(reader.fetch(by_way_of(proxy, owner.hub->place()), 1, {bytes, bytes, &combine}, 8 * count)
          == link_fetch::outcome::done);
    bool right = true;
    for (uint64_t i = 0; i < count; ++i)
      right = right && sum[i] == static_cast<double>(i) + 1;
    CHECK(right);
  }
}

TEST_CASE("links: damaged bytes are seen by their checksum, and come again") {
  linked_owner owner{1 * mib};
  owner.fill(1 * mib);
  auto exposed = owner.expose(1, 0, 1 * mib);
  link_proxy proxy{owner.hub->place().endpoints.front(), {{.damage_byte = greeted_bytes + 32 + 300'000}}};
  auto options = on_loopback();
  options.checksums = true;
  linked_reader reader{options};
  std::vector<std::byte> out(1 * mib);
  CHECK(reader.fetch(by_way_of(proxy, owner.hub->place()), 1, {out.data()}, 1 * mib) == link_fetch::outcome::done);
  CHECK(has_pattern(out));
  CHECK(reader.hub->counts().damaged_frames == 1);
}

TEST_CASE("links: a connection that falls silent is made again") {
  linked_owner owner{1 * mib};
  owner.fill(1 * mib);
  auto exposed = owner.expose(1, 0, 1 * mib);
  link_proxy proxy{owner.hub->place().endpoints.front(), {{.stop_after = 500'000}}};
  auto options = on_loopback();
  options.silence = 100ms;
  linked_reader reader{options};
  std::vector<std::byte> out(1 * mib);
  CHECK(reader.fetch(by_way_of(proxy, owner.hub->place()), 1, {out.data()}, 1 * mib) == link_fetch::outcome::done);
  CHECK(has_pattern(out));
  CHECK(proxy.connections() == 2);
}

TEST_CASE("links: a connection whose way is doubted is not waited for") {
  linked_owner owner{1 * mib};
  owner.fill(1 * mib);
  auto exposed = owner.expose(1, 0, 1 * mib);
  link_proxy proxy{owner.hub->place().endpoints.front(), {{.stop_after = 500'000}}};
  auto options = on_loopback();
  options.silence = 1min;
  linked_reader reader{options};
  std::vector<std::byte> out(1 * mib);
  auto fetch = reader.begin(by_way_of(proxy, owner.hub->place()), 1, {out.data()}, 1 * mib);
  REQUIRE(await_true([&] { return fetch->pieces() > 0; }));
  reader.hub->doubt(owner.hub->place().process);
  REQUIRE(reader.await_ends(1));
  CHECK(fetch->state() == link_fetch::outcome::done);
  CHECK(has_pattern(out));
  CHECK(proxy.connections() == 2);
}

TEST_CASE("links: where a way is doubted before anybody goes it, its connection is waited for a third of the time") {
  auto deaf = listen_at({"127.0.0.1", 0}); // takes connections, and says nothing
  REQUIRE(deaf);
  linked_owner owner{4096};
  auto there = owner.hub->place();
  there.endpoints = {own_end_text(deaf->descriptor)};
  auto options = on_loopback();
  options.connect_limit = 600ms;
  struct {
    uint64_t doubted;
    const char* said;
  } cases[]{{there.process, "within 0.2 s"}, {there.process + 1, "within 0.6 s"}}; // the second is another process's
  for (auto& x : cases) {
    linked_reader reader{options};
    reader.hub->doubt(x.doubted);
    std::vector<std::byte> out(4096);
    CHECK(reader.fetch(there, 1, {out.data()}, out.size()) == link_fetch::outcome::unreachable);
    CHECK(contains(render(reader.last->why()), x.said));
  }
}

TEST_CASE("links: a connection that breaks again and again before a byte ends as unreachable") {
  linked_owner owner{1 * mib};
  auto exposed = owner.expose(1, 0, 1 * mib);
  link_proxy proxy{owner.hub->place().endpoints.front(),
                   std::deque<link_proxy::trouble>(20, {.cut_after = greeted_bytes})};
  linked_reader reader;
  std::vector<std::byte> out(1 * mib);
  CHECK(reader.fetch(by_way_of(proxy, owner.hub->place()), 1, {out.data()}, 1 * mib)
        == link_fetch::outcome::unreachable);
  CHECK(contains(render(reader.last->why()), "5 times before a byte had come"));
}

TEST_CASE("links: after a fetch is revoked nothing is written, and late bytes are dropped and counted") {
  constexpr uint64_t bytes = 8 * mib;
  linked_owner owner{bytes};
  owner.fill(bytes);
  auto exposed = owner.expose(1, 0, bytes);
  auto next = owner.expose(2, 0, 64);
  for (bool reduces : {false, true}) {
    link_proxy proxy{owner.hub->place().endpoints.front(), {{.stop_after = mib}}};
    auto options = on_loopback();
    options.silence = 1min;
    linked_reader reader{options};
    std::vector<std::byte> out(bytes), zeros(bytes), small(64);
    auto combine = *reducer::of(proto::INT8, gpu_sim::SUM);
    auto fetch = reader.begin(by_way_of(proxy, owner.hub->place()), 1,
                              reduces ? block_sink{out.data(), zeros.data(), &combine} : block_sink{out.data()}, bytes);
    REQUIRE(await_true([&] { return fetch->pieces() > 0; }));
    reader.hub->revoke(fetch);
    std::fill(out.begin(), out.end(), std::byte{0});
    proxy.release();
    CHECK(reader.fetch(by_way_of(proxy, owner.hub->place()), 2, {small.data()}, 64) == link_fetch::outcome::done);
    CHECK(out == zeros);
    CHECK(has_pattern(small));
    CHECK(reader.hub->counts().late_frames > 0);
    CHECK(reader.ended == 1); // the revoked one is not reported
    CHECK(proxy.connections() == 1);
  }
}

TEST_CASE("links: a reader that stops costs no memory, however much is offered, and holds up no one") {
  constexpr uint64_t offered = 1024 * mib;
  linked_owner owner{offered};
  owner.fill(8 * mib);
  auto exposed = owner.expose(1, 0, offered);
  auto other = owner.expose(2, 0, 8 * mib);
  auto there = *numeric_address(*parse_endpoint(owner.hub->place().endpoints.front()));
  linked_reader reader;
  std::vector<std::byte> out(8 * mib, std::byte{1});
  auto before = own_memory();
  open_socket stopped{::socket(AF_INET, SOCK_STREAM, 0)};
  REQUIRE(::connect(stopped.descriptor, there.get(), there.size) == 0);
  have_admitted(stopped);
  auto say = [&](const auto& words) {
    REQUIRE(::send(stopped.descriptor, words.data(), words.size(), 0) == static_cast<ssize_t>(words.size()));
  };
  say(encode(link_hello{owner.hub->place().process}));
  for (uint64_t i = 1; i <= 16; ++i)
    say(encode(link_request{.id = i, .key = key_number(1), .device = {3}, .bytes = offered}));
  REQUIRE(await_true([&] { return owner.hub->counts().bytes_sent > 0; }));
  CHECK(reader.fetch(owner.hub->place(), 2, {out.data()}, 8 * mib) == link_fetch::outcome::done);
  CHECK(has_pattern(out));
  CHECK(own_memory() < before + 8 * mib);
  CHECK(owner.hub->counts().bytes_sent < 64 * mib); // what the system's buffers of a socket hold, and the other block
}

TEST_CASE("links: a memory file that was cut ends the fetch, and no process") {
  linked_owner owner{4 * mib};
  owner.fill(4 * mib);
  auto exposed = owner.expose(1, 0, 4 * mib);
  std::filesystem::resize_file(owner.memory->file(), 0);
  linked_reader reader;
  std::vector<std::byte> out(4 * mib);
  CHECK(reader.fetch(owner.hub->place(), 1, {out.data()}, out.size()) == link_fetch::outcome::damaged);
  CHECK(contains(render(reader.last->why()), "device 0x3"));
}

TEST_CASE("links: fetches under way when the process closes its links get an error") {
  linked_owner owner{1 * mib};
  auto exposed = owner.expose(1, 0, 1 * mib);
  link_proxy proxy{owner.hub->place().endpoints.front(), {{.stop_after = 1000}}};
  linked_reader reader;
  std::vector<std::byte> out(1 * mib);
  auto fetch = reader.begin(by_way_of(proxy, owner.hub->place()), 1, {out.data()}, 1 * mib);
  REQUIRE(await_true([&] { return fetch->pieces() > 0; }));
  reader.hub.reset();
  CHECK(reader.ended == 1);
  CHECK(fetch->state() == link_fetch::outcome::unreachable);
}

TEST_CASE("links: an address that this host does not have is refused in a sentence") {
  auto options = on_loopback();
  options.addresses = {"192.0.2.1"}; // for documentation alone
  auto hub = link_hub::start(options);
  REQUIRE_FALSE(hub);
  CHECK(contains(render(hub.error()), "cannot take bulk connections at 192.0.2.1:0: "));
  CHECK(contains(render(hub.error()), "set link.addresses"));
}
