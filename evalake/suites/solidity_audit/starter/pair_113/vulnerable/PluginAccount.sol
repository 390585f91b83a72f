// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {PluginRegistry} from "./PluginRegistry.sol";

/// @title PluginAccount
/// @notice Ether account of one owner; functions that it lacks are served by plugins of the registry.
contract PluginAccount {
    PluginRegistry public immutable registry;
    address public owner;
    mapping(address => bool) public enabled;
    mapping(bytes32 => bytes32) internal pluginData;

    event Paid(address indexed to, uint256 amount);
    event PluginSet(address indexed plugin, bool enabled);

    modifier onlyOwner() {
        require(msg.sender == owner, "not owner");
        _;
    }

    constructor(PluginRegistry registry_, address owner_) {
        registry = registry_;
        owner = owner_;
    }

    receive() external payable {}

    function pay(address payable to, uint256 amount) external onlyOwner {
        emit Paid(to, amount);
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Notes which plugins the owner uses.
    function setPlugin(address plugin, bool on) external onlyOwner {
        enabled[plugin] = on;
        emit PluginSet(plugin, on);
    }

    fallback() external payable {
        address plugin = registry.pluginFor(msg.sig);
        require(plugin != address(0), "no such function");
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), plugin, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok
            case 0 { revert(0, returndatasize()) }
            default { return(0, returndatasize()) }
        }
    }
}
