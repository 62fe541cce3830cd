#include "actors/configuration/ini_keys.hpp"

#include <doctest/doctest.h>

using ringmaster::ini_keys;
using keys = std::vector<std::string>;

TEST_CASE("ini keys: all keys are found, with their sections, as often as they are set") {
  CHECK(ini_keys("") == keys{});
  CHECK(ini_keys("[a]\nb=1\nc=2\n[d]\nb=1\n[a]\nb = 3") == keys{"a.b", "a.c", "d.b", "a.b"});
  CHECK(ini_keys("b=1\n c-d_e =2\n") == keys{"global.b", "global.c-d_e"});
  CHECK(ini_keys("[ a ]\nlist=[1,\n2]\nlist=[\"x\"]\n") == keys{"a.list", "a.list"});
  CHECK(ini_keys("[a.b]\nc=1\nd { e=1 }\n") == keys{"a.b.c", "a.b.d"});
}

TEST_CASE("ini keys: comments, texts, lists and maps hold no keys") {
  CHECK(ini_keys("[a]\nb=1 ; c=2\n; d=3\n[e]\nf=1\n") == keys{"a.b", "e.f"});
  CHECK(ini_keys("[a]\nb=\"c=1\\\" [d] ; \"\ne='f'\ng=[\"h=1\",\n\"i=2 ; ]\", ; j=1 ]\n\"k\"]\nl=1\n")
        == keys{"a.b", "a.e", "a.g", "a.l"});
  CHECK(ini_keys("[a]\nb={\nc=1\n}\nd={e=1,f=2}\n") == keys{"a.b", "a.d"});
}
