// Writes a capture that has every kind of iWARP message in it, and beside it the expected contents, one line of JSON
// for each packet: wire_kinds CAPTURE LIST. judge.py holds tshark's reading of the one against the other.

#include <cstdio>
#include <fstream>

#include "kinds.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: wire_kinds CAPTURE LIST\n", stderr);
    return 2;
  }
  std::ofstream pcap(argv[1], std::ios::binary);
  std::ofstream list(argv[2]);
  weft::e2e::Capture capture(pcap, list);
  weft::e2e::startup_kinds(capture);
  weft::e2e::data_kinds(capture);
  weft::e2e::terminate_kinds(capture);
  pcap.close();
  list.close();
  if (!pcap || !list) {
    std::fputs("the files could not be written\n", stderr);
    return 1;
  }
  return 0;
}
