// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title SaltworksToken
/// @notice Token with a burn; loops and sums that cannot wrap are left unchecked to save gas.
contract SaltworksToken {
    string public constant name = "Saltworks Token";
    string public constant symbol = "SALT";
    uint8 public constant decimals = 18;

    uint256 public immutable totalMinted;
    uint256 public totalBurned;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed holder, address indexed spender, uint256 value);

    constructor(uint256 supply) {
        totalMinted = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function totalSupply() external view returns (uint256) {
        unchecked {
            return totalMinted - totalBurned;
        }
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        unchecked {
            allowance[from][msg.sender] -= amount;
        }
        _move(from, to, amount);
        return true;
    }

    /// @notice Pays several accounts at once.
    function transferMany(address[] calldata to, uint256[] calldata amounts) external {
        require(to.length == amounts.length, "length mismatch");
        for (uint256 i = 0; i < to.length; ) {
            _move(msg.sender, to[i], amounts[i]);
            unchecked {
                ++i;
            }
        }
    }

    function burn(uint256 amount) external {
        balanceOf[msg.sender] -= amount;
        unchecked {
            totalBurned += amount;
        }
        emit Transfer(msg.sender, address(0), amount);
    }

    function _move(address from, address to, uint256 amount) private {
        require(to != address(0), "zero address");
        balanceOf[from] -= amount;
        unchecked {
            balanceOf[to] += amount;
        }
        emit Transfer(from, to, amount);
    }
}
