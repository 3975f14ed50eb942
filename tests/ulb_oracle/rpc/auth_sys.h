#pragma once

// What nfs4.x includes: the parameters of AUTH_SYS, under the name that libtirpc has for them.
#include <rpc/auth_unix.h>

#define xdr_authsys_parms xdr_authunix_parms
