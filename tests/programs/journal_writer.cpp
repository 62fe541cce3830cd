// Writes a journal until it is killed: journal_writer DIR OPERATIONS
// Says "open" when it owns the journal, then after each operation how many records are durable so far, and waits for
// its end when all are written.

#include "messages/errc.hpp"
#include "runtime/journal/journal_store.hpp"
#include "tests/support/records.hpp"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  using namespace ringmaster;
  if (argc != 3)
    return 2;
  journal_store::options opts;
  opts.dir = argv[1];
  opts.retain_records = 1'000'000;
  auto journal = journal_store::open(opts);
  if (!journal) {
    std::fprintf(stderr, "%s\n", render(journal.error()).c_str());
    return 1;
  }
  std::puts("open");
  std::fflush(stdout);
  auto operations = std::strtoull(argv[2], nullptr, 10);
  for (uint64_t sequence = 1; sequence <= operations; ++sequence) {
    if ((*journal)->append(test::whole_operation(7, sequence)) || (*journal)->flush())
      return 1;
    std::printf("%llu\n", static_cast<unsigned long long>((*journal)->state().last_index()));
    std::fflush(stdout);
  }
  return std::getchar() == EOF ? 0 : 1;
}
