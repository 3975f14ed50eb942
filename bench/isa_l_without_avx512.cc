// A library to preload: ISA-L's CRC32c as processors without AVX-512 run it.

#include <cstdint>

extern "C" {

unsigned int crc32_iscsi_01(unsigned char* octets, int len, unsigned int state);

unsigned int crc32_iscsi(unsigned char* octets, int len, unsigned int state) {
  return crc32_iscsi_01(octets, len, state);
}

}  // extern "C"
