// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title PluginRegistry
/// @notice Directory of plugins: which contract serves which function of accounts.
contract PluginRegistry {
    mapping(bytes4 => address) public pluginFor;
    mapping(address => address) public authorOf;
    uint256 public count;

    event Registered(bytes4 indexed selector, address indexed plugin, address indexed author);

    /// @notice Offers a plugin for a function that no other plugin serves.
    function register(bytes4 selector, address plugin) external {
        require(plugin.code.length > 0, "no code");
        require(pluginFor[selector] == address(0), "function taken");
        pluginFor[selector] = plugin;
        authorOf[plugin] = msg.sender;
        count += 1;
        emit Registered(selector, plugin, msg.sender);
    }
}
