#pragma once

namespace weft::wire_v2 {

// planted: whether fault `number` of faults.tsv is on.
bool planted(int number);

}  // namespace weft::wire_v2
