#include "runtime/text/ini_section.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("ini section: replaces the old one and keeps all other bytes") {
  const std::string before = "; first\n[device]\n  count=4 ; four\n\n", after = "\n; of the next\n[node]\nname=\"x\"";
  auto changed = replace_section(before + " [costs] ; old\nlatency=1us\n; more\nbandwidth=1\n" + after, "costs",
                                 "[costs]\nlatency=2us\n");
  REQUIRE(changed);
  CHECK(*changed == before + "[costs]\nlatency=2us\n" + after);
}

TEST_CASE("ini section: is appended if there was none") {
  CHECK(*replace_section("", "costs", "[costs]\na=1\n") == "[costs]\na=1\n");
  CHECK(*replace_section("[node]\nname=\"[costs]\"\n", "costs", "[costs]\na=1\n")
        == "[node]\nname=\"[costs]\"\n\n[costs]\na=1\n");
  CHECK(*replace_section("[node]", "costs", "[costs]\na=1\n") == "[node]\n\n[costs]\na=1\n");
}

TEST_CASE("ini section: writing it again changes nothing") {
  auto once = *replace_section("[a]\nb=1\n", "costs", "[costs]\n; how\nc=1\n");
  CHECK(*replace_section(once, "costs", "[costs]\n; how\nc=1\n") == once);
}

TEST_CASE("ini section: one that appears twice is refused") {
  auto refused = replace_section("[costs]\na=1\n[b]\nc=1\n[costs]\nd=1\n", "costs", "[costs]\n");
  REQUIRE(!refused);
  CHECK(render(refused.error()).find("[costs] appears twice") != std::string::npos);
}
