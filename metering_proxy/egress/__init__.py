"""The tenants' ways out (ARCHITECTURE, decision 13): CONNECT for anonymous traffic, `/connections/{id}/…` with a
credential that is added here.

names (may this host be asked for) → outside (resolve, judge every address, connect to one) → ways (what a plan
allows, counted) → tunnels and forwarding (the bytes). Nothing else in the meter connects to where a tenant says.
"""
