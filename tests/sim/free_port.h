// A port on loopback for a server that is started, and started again, by a test.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>

#include "storage/base/descriptor.h"

namespace labrack::sim {

// A TCP port of 127.0.0.1 that nobody has right now; 0 when there is none. It lies below the range
// from which the kernel takes ports for outgoing connections: those would take it away while the
// server is down.
inline int FreePort() {
  constexpr int kFirst = 20'000;
  constexpr int kCount = 12'000;
  std::random_device random;
  for (int tries = 0; tries < 1000; ++tries) {
    const int port = kFirst + static_cast<int>(random() % kCount);
    const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return port;
  }
  return 0;
}

}  // namespace labrack::sim
