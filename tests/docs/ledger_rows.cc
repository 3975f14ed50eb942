// Prints the rows of docs/security.md that the code describes, one a line.
#include <cstdio>

#include "apps/gateway/ledger_kinds.h"
#include "apps/serve/ledger_kinds.h"
#include "rpcrdma/ledger_kinds.h"
#include "verbs-shim/soft/ledger_kinds.h"

int main() {
  const auto print = [](const auto& kinds) {
    for (const weft::LedgerKind& kind : kinds) std::puts(weft::to_markdown(kind).c_str());
  };
  print(weft::verbs::soft::kLedgerKinds);
  print(weft::rpcrdma::kLedgerKinds);
  print(weft::serve::kLedgerKinds);
  print(weft::gateway::kLedgerKinds);
}
