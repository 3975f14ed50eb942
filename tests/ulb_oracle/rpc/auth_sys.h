#pragma once

// nfs4.x includes this file: the parameters of AUTH_SYS, under libtirpc's name for them.
#include <rpc/auth_unix.h>

#define xdr_authsys_parms xdr_authunix_parms
