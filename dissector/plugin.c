// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What Wireshark asks of every plug-in: which version it was built for, what
 * kind it is, and its registration functions.
 */
#define WS_BUILD_DLL
#include <wireshark.h>
#include <ws_version.h>

#include <epan/proto.h>
#include <wsutil/plugins.h>

#include "migros.h"

WS_DLL_PUBLIC_DEF const char plugin_version[] = "0.1.0";
WS_DLL_PUBLIC_DEF const int plugin_want_major = WIRESHARK_VERSION_MAJOR;
WS_DLL_PUBLIC_DEF const int plugin_want_minor = WIRESHARK_VERSION_MINOR;

WS_DLL_PUBLIC void plugin_register(void);
WS_DLL_PUBLIC uint32_t plugin_describe(void);

void plugin_register(void)
{
	static const proto_plugin migros = {
		.register_protoinfo = migros_register,
		.register_handoff = migros_handoff,
	};

	proto_register_plugin(&migros);
}

uint32_t plugin_describe(void)
{
	return WS_PLUGIN_DESC_DISSECTOR;
}
